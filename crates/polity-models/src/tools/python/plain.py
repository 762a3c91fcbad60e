"""Plain data as bytes: all that crosses between tests and the program that they are of.

None, truth values, whole numbers of any size, floats, complex numbers, strings, bytes, lists, tuples, dictionaries, sets and frozen sets; nothing
else. What is of a type made from one of these is written as what it holds, so that none of its own methods cross. Reading makes
these types alone, and takes whatever bytes come: it knows how long and how deep they may be, and runs nothing.
"""
import os, struct

MOST = 16_000_000  # Bytes of a message.
DEEPEST = 100
KINDS = ((bool, b"?"), (int, b"i"), (float, b"f"), (complex, b"c"), (str, b"s"), (bytes, b"b"),
         (list, b"l"), (tuple, b"t"), (set, b"S"), (frozenset, b"F"), (dict, b"d"))
OF_TYPE = dict(KINDS)
MAKE = {b"l": list, b"t": tuple, b"S": set, b"F": frozenset}


class NotPlain(Exception):
    """A value that is no plain data, or bytes that are none."""


def put(value, out, depth=0):
    if value is None:
        out.append(b"N")
        return
    kind = OF_TYPE.get(type(value)) or next((kind for base, kind in KINDS if isinstance(value, base)), None)
    if kind is None:
        raise NotPlain("a value of the type %s is no plain data" % type(value).__name__)
    if depth > DEEPEST:
        raise NotPlain("a value is nested more than %d deep" % DEEPEST)
    # By the methods of the type itself, whatever a type made from it has.
    if kind == b"?":
        out.append(b"T" if value else b"U")
        return
    if kind == b"f":
        out += kind, struct.pack(">d", value)
        return
    if kind == b"c":
        out += kind, struct.pack(">dd", complex.real.__get__(value), complex.imag.__get__(value))
        return
    if kind == b"i":
        data = int.to_bytes(value, int.bit_length(value) // 8 + 1, "big", signed=True)
    elif kind == b"s":
        data = str.encode(value, "utf-8", "surrogatepass")
    elif kind == b"b":
        data = bytes(memoryview(value))
    else:
        items = list(dict.items(value) if kind == b"d" else MAKE[kind].__iter__(value))
        out += kind, struct.pack(">I", len(items))
        for item in items:
            if kind == b"d":
                put(item[0], out, depth + 1)
                item = item[1]
            put(item, out, depth + 1)
        return
    out += kind, struct.pack(">I", len(data)), data


def encode(value):
    out = []
    try:
        put(value, out)
    except struct.error as error:
        raise NotPlain(str(error)) from None
    return b"".join(out)


def take(data, at, depth):
    """A value, and where the next one begins."""
    kind = data[at:at + 1]
    at += 1
    if kind in (b"N", b"T", b"U"):
        return {b"N": None, b"T": True, b"U": False}[kind], at
    if kind == b"f":
        return struct.unpack_from(">d", data, at)[0], at + 8
    if kind == b"c":
        return complex(*struct.unpack_from(">dd", data, at)), at + 16
    count = struct.unpack_from(">I", data, at)[0]
    at += 4
    if count > len(data) - at:
        raise NotPlain("a value ends too early")
    if kind in (b"i", b"s", b"b"):
        part, at = data[at:at + count], at + count
        if kind == b"i":
            return int.from_bytes(part, "big", signed=True), at
        return (part if kind == b"b" else part.decode("utf-8", "surrogatepass")), at
    if depth > DEEPEST or kind not in (b"l", b"t", b"S", b"F", b"d"):
        raise NotPlain("a value of no kind that is known, or nested too deep")
    items = []
    for _ in range(2 * count if kind == b"d" else count):
        item, at = take(data, at, depth + 1)
        items.append(item)
    return (dict(zip(items[::2], items[1::2])) if kind == b"d" else MAKE[kind](items)), at


def decode(data):
    try:
        value, end = take(data, 0, 0)
    except (struct.error, UnicodeDecodeError, TypeError) as error:  # A list as a key, for instance.
        raise NotPlain(str(error)) from None
    if end != len(data):
        raise NotPlain("something stands behind a value")
    return value


def exactly(fd, size):
    parts = []
    while size > 0:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def write(fd, data):
    data = memoryview(data)
    while data:
        data = data[os.write(fd, data):]


def send(fd, mark, value):
    """A message: its length, a mark of eight bytes that the answer has to bear, and a value."""
    body = mark + encode(value)
    if len(body) > MOST:
        raise NotPlain("a message of %d bytes is longer than the %d that it may be" % (len(body), MOST))
    write(fd, struct.pack(">I", len(body)) + body)


def receive(fd):
    size = struct.unpack(">I", exactly(fd, 4))[0]
    if not 8 < size <= MOST:
        raise NotPlain("a message of %d bytes" % size)
    body = exactly(fd, size)
    return body[:8], decode(body[8:])
