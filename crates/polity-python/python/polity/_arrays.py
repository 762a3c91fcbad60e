"""Columns: NumPy's arrays where NumPy is installed, else memory views."""

from __future__ import annotations

import array
import functools
import json
import random
from typing import Any, Sequence


@functools.lru_cache(maxsize=None)
def numpy() -> Any:
    """NumPy, if it is installed. Everything works without it, more slowly. The command does not wait for its import."""
    try:
        import numpy
    except ImportError:
        return None
    return numpy


_CODES: dict[str, Any] = {"f8": "d", "u4": "I", "u8": "Q"}


def column(data: bytes, kind: str) -> Any:
    """Little-endian bytes as a column of ``f8``, ``u4`` or ``u8``. It cannot be written to."""
    np = numpy()
    if np is not None:
        return np.frombuffer(data, dtype=f"<{kind}")
    return memoryview(data).cast(_CODES[kind])


def doubles(values: Any, n: int, what: str) -> bytes:
    """Numbers as bytes of doubles: one for each of ``n``, or one number for all."""
    np = numpy()
    if np is not None:
        made = np.asarray(values)
        if made.dtype == object:
            made = np.array([float("nan") if value is None else value for value in values])
        if made.dtype.kind not in "fiub":
            raise TypeError(f"{what} must be numbers, not {made.dtype}")
        made = made.astype("<f8", copy=False)
        if made.ndim == 0:
            made = np.broadcast_to(made, (n,))
        if made.shape != (n,):
            raise ValueError(f"{what} must have one value for each of the {n} agents, not the shape {made.shape}")
        return np.ascontiguousarray(made).tobytes()
    if isinstance(values, (int, float)):
        values = [values] * n
    made = array.array("d", [float("nan") if value is None else float(value) for value in values])
    if len(made) != n:
        raise ValueError(f"{what} must have one value for each of the {n} agents, not {len(made)}")
    return made.tobytes()


def generator(key: tuple[int, int]) -> Any:
    """Random numbers from two draws of the run's own stream: NumPy's ``Generator``, else ``random.Random``."""
    np = numpy()
    if np is not None:
        return np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64)))
    return random.Random(key[0] << 64 | key[1])


# What is kept from round to round: JSON with arrays beside it. The first 8 bytes are the length of the JSON.


def packed(state: Any, whose: str) -> bytes:
    """A state as bytes: the same state gives the same bytes."""
    np = numpy()
    parts: list[bytes] = []

    def plain(value: Any, at: str) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if np is not None and isinstance(value, np.generic):
            return plain(value.item(), at)
        if np is not None and isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                raise TypeError(f"the state of {whose} has an array of objects at {at}; use an array of numbers")
            own = np.ascontiguousarray(value)
            parts.append(own.tobytes())
            return {"": [own.dtype.str, list(own.shape), len(parts[-1])]}
        if isinstance(value, dict):
            wrong = next((key for key in value if not isinstance(key, str) or not key), None)
            if wrong is not None:
                raise TypeError(f"the state of {whose} has the key {wrong!r} at {at}; keys must be texts that are not empty")
            return {key: plain(value[key], f"{at}[{key!r}]") for key in value}
        if isinstance(value, (list, tuple)):
            return [plain(item, f"{at}[{i}]") for i, item in enumerate(value)]
        raise TypeError(
            f"the state of {whose} has a {type(value).__name__} at {at}; it can hold numbers, texts, lists, dictionaries and "
            "NumPy arrays, since it is saved with the run"
        )

    head = json.dumps(plain(state, "state"), separators=(",", ":")).encode()
    return len(head).to_bytes(8, "little") + head + b"".join(parts)


def unpacked(data: bytes) -> Any:
    """The state of bytes made by :func:`packed`."""
    np = numpy()
    size = int.from_bytes(data[:8], "little")
    at = 8 + size

    def whole(value: Any) -> Any:
        nonlocal at
        if isinstance(value, list):
            return [whole(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "" not in value:
            return {key: whole(value[key]) for key in value}
        kind, shape, length = value[""]
        if np is None:
            raise ImportError("the saved state has NumPy arrays, but NumPy is not installed: pip install numpy")
        count = length // np.dtype(kind).itemsize
        made = np.frombuffer(data, dtype=kind, count=count, offset=at) if count else np.empty(0, dtype=kind)
        at += length
        return made.reshape(shape).copy()

    return whole(json.loads(data[8 : 8 + size]))


def texts(values: Sequence[Any], n: int, what: str) -> list[str | None]:
    """Texts for each agent; ``None``: not this one."""
    made = [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]
    if len(made) != n:
        raise ValueError(f"{what} must have one text (or None) for each of the {n} agents, not {len(made)}")
    return made
