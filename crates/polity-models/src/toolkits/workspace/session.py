"""The first process of a workspace's sandbox: keeps the files of /work as it is told, runs cells and commands within limits, and reports.

Standard input is a socket, on which each message is its length in eight bytes, and as many bytes. An order is two messages: a header in JSON,
and the contents of files. It says what to change in /work, and then, perhaps, what to run: a cell of Python or a command of a shell. A
report is three messages: a header in JSON, the contents of files that are new, and what was printed.

The interpreter that runs cells lives as long as the sandbox, and is stopped between orders: nothing runs while files are looked at. After each
order all other processes are ended.

What stands in plain.py and walls.py is read before this text.
"""
import _ast, builtins, hashlib, select, stat, time

WORK = b"/work"  # The working directory: the files of a version.
PLACES = ("/work", "/tmp")  # The only places that can be written.
LONGEST_PATH = 1_000  # Bytes.
FRAMES = 12  # Of a trace that is shown.
PASSES = 300  # Tries to end processes that begin others.


class Beyond(Exception):
    """The files of the workspace are beyond a limit."""


# ------------------------------------------------------------------ in the interpreter

def show(error):
    """Prints an exception, without the lines of this text that run cells."""
    import traceback

    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename == "<string>":
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace, limit=-FRAMES)


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass  # The cell has closed or replaced it.


def cell(name, code, scope):
    """Runs a cell and shows the value of its last expression; whether it came to its end."""
    import importlib, linecache

    linecache.cache[name] = (len(code), None, [line + "\n" for line in code.split("\n")], name)
    importlib.invalidate_caches()
    me = os.getpid()
    try:
        body = compile(code, name, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
        last = [body.body.pop()] if body.body and isinstance(body.body[-1], _ast.Expr) else []
        exec(compile(body, name, "exec", dont_inherit=True), scope)
        exec(compile(_ast.Interactive(last), name, "single", dont_inherit=True), scope)
        good = True
    except BaseException as error:
        good = False
        try:
            show(error)
        except BaseException:
            sys.stdout.write("%s (it cannot be printed)\n" % type(error).__name__)
    flush()
    if os.getpid() != me:
        os._exit(not good)  # A process that the cell has forked.
    return good


def interpret(orders, done, printed):
    """Runs cells as they come."""
    import types

    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    sys.modules["__main__"], sys.argv = module, [""]
    sys.path.insert(0, os.fsdecode(WORK))
    os.dup2(printed, 1), os.dup2(printed, 2)
    for fd, name in ((1, "stdout"), (2, "stderr")):
        # Both by lines, so that they come in the order in which they were written.
        stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
        setattr(sys, name, stream), setattr(sys, "__%s__" % name, stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dumpable(True)
    confine(None, None)
    while True:
        length = size(orders)
        if length is None:
            os._exit(0)
        name, code = json.loads(exactly(orders, length))
        os.write(done, b"k" if cell(name, code, module.__dict__) else b"e")


# ------------------------------------------------------------------ in process 1

class Interpreter:
    """The process that runs cells."""

    def __init__(self, printed, others):
        theirs, self.orders = os.pipe()
        self.done, done = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            for fd in (self.orders, self.done, *others):
                os.close(fd)
            interpret(theirs, done, printed)
        os.close(theirs)
        self.kept = done  # So that reading never comes to an end.

    def begin(self, order):
        text = json.dumps(order).encode()
        os.set_blocking(self.done, False)
        read_all(self.done, bytearray())
        os.kill(self.pid, signal.SIGCONT)
        write(self.orders, struct.pack(">Q", len(text)) + text)


def run_shell(command, printed, others):
    pid = os.fork()
    if pid == 0:
        for fd in others:
            os.close(fd)
        os.dup2(printed, 1), os.dup2(printed, 2)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        confine(None, None)
        os.execv("/bin/bash", ["bash", "-c", command])
    return pid


def read_all(fd, into):
    """What can be read now, up to a byte more than may be printed."""
    while len(into) <= LIMITS["output"]:
        try:
            part = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if not part:
            return
        into += part


def watch(channel, printed, text, pid, done, seconds):
    """Waits for the end of a cell or a command, or for a limit; how it ended, and its status. `text` takes what is printed."""
    due, ended, full, look = time.monotonic() + seconds, {}, 0, time.monotonic() + TICK_MS / 1000
    handle = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(channel, 0)  # Only that nobody is there any more.
    for fd in (handle, printed) + ((done,) if done is not None else ()):
        poll.register(fd, select.POLLIN)
    try:
        while True:
            ready = {fd for fd, _ in poll.poll(TICK_MS)}
            if channel in ready:
                os._exit(1)
            read_all(printed, text)
            if len(text) > LIMITS["output"]:
                return "too much output", -signal.SIGKILL
            if done is not None and done in ready:
                return ("finished" if os.read(done, 1) == b"k" else "raised"), 0
            reap(ended)
            if pid in ended:
                return "exited", ended[pid]
            if time.monotonic() < look:
                continue
            look = time.monotonic() + TICK_MS / 1000
            found = stats()
            rooms = [os.statvfs(place) for place in PLACES]
            # Processes that end while they are counted leave their share of pages to those that are counted next: looked at twice.
            full = full + 1 if memory(found) > LIMITS["memory"] else 0
            for cut, reached in (
                ("too many processes", crowded(found)),
                ("too much memory", full > 1 or sockets() > LIMITS["sockets"]),
                # The folder itself does not count.
                ("too many files", any(room.f_files - room.f_ffree - 1 > LIMITS["files"] for room in rooms)),
                ("too long", time.monotonic() >= due),
            ):
                if reached:
                    return cut, -signal.SIGKILL
    finally:
        os.close(handle)


def states(pid):
    """The states of a process's threads, as letters; none if it has ended."""
    found = set()
    try:
        for thread in os.listdir("/proc/%s/task" % pid):
            with open("/proc/%s/task/%s/stat" % (pid, thread), "rb") as file:
                found.add(file.read().rpartition(b")")[2].split()[0])
    except OSError:
        pass
    return found - {b"Z", b"X"}


def settle(interpreter):
    """Stops the interpreter and ends all other processes; whether that was possible."""
    if interpreter is None:
        end_all()
        return True
    for _ in range(PASSES):
        try:
            os.kill(interpreter, signal.SIGSTOP)
        except ProcessLookupError:
            return False
        others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, interpreter)]
        others = [pid for pid in others if states(pid)]
        for pid in others:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        ended = {}
        reap(ended)
        if interpreter in ended:
            return False
        if not others and states(interpreter) <= {b"T"}:
            return True
        time.sleep(0.0005)
    return False


def destroy(path):
    """Removes whatever is at a path."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    os.chmod(path, 0o755)
    for name in os.listdir(path):
        destroy(path + b"/" + name)
    os.rmdir(path)


def entry(path, mode, length, fresh):
    """(kind, what) of a path: a folder, a file with the hash of its contents, which it adds to `fresh`, or a link with its target."""
    if stat.S_ISLNK(mode):
        return "l", os.readlink(path).decode()
    plain = 0o755 if stat.S_ISDIR(mode) or mode & 0o100 else 0o644
    if stat.S_IMODE(mode) != plain:
        os.chmod(path, plain)
    if stat.S_ISDIR(mode):
        return "d", ""
    with open(path, "rb") as file:
        data = file.read(length)
    key = hashlib.sha256(data).hexdigest()
    fresh[key] = data
    return ("x" if plain == 0o755 else "f"), key


def scan(known, fresh, dropped):
    """All entries of the workspace by path. Nothing runs meanwhile. `fresh` keeps the contents of files that differ from `known`; `dropped` says
    what was removed because no version can hold it."""
    found, total, folders = {}, 0, [b""]
    while folders:
        folder = folders.pop()
        with os.scandir(WORK + b"/" + folder) as entries:
            names = sorted(one.name for one in entries)
        for name in names:
            path = folder + b"/" + name if folder else name
            full = WORK + b"/" + path
            info = os.lstat(full)
            if len(path) > LONGEST_PATH:
                raise Beyond("a path is longer than %d bytes" % LONGEST_PATH)
            try:
                text = path.decode()
                kind = info.st_mode
                if not (stat.S_ISDIR(kind) or stat.S_ISLNK(kind) or stat.S_ISREG(kind)):
                    raise ValueError("it is a pipe, a socket or a device")
                total += info.st_size if stat.S_ISREG(kind) else 0
                if total > LIMITS["disk"] or len(found) >= LIMITS["files"]:
                    raise Beyond("more than %d bytes or %d entries" % (LIMITS["disk"], LIMITS["files"]))
                contents = {}
                found[text] = entry(full, kind, info.st_size, contents)
                if known.get(text) != found[text]:
                    fresh.update(contents)
            except ValueError as error:  # What is no UTF-8 is such an error, too.
                why = "its name or its target is not UTF-8" if isinstance(error, UnicodeError) else str(error)
                dropped.append([path.decode("utf-8", "backslashreplace"), why])
                destroy(full)
                continue
            if stat.S_ISDIR(kind):
                folders.append(path)
    return found


def change(order, data, known):
    """Makes the files of the workspace as an order says."""
    for path in sorted(order["remove"], reverse=True):
        full = WORK + b"/" + path.encode()
        (os.rmdir if known.pop(path)[0] == "d" else os.unlink)(full)
    at = 0
    for path, kind, what in order["put"]:
        full = WORK + b"/" + path.encode()
        if path in known:
            os.unlink(full)  # Other names of the same file keep their contents.
        if kind == "d":
            os.mkdir(full, 0o755)
        elif kind == "l":
            os.symlink(what, full)
        else:
            part, at = data[at:at + what], at + what
            with open(full, "xb") as file:
                file.write(part)
            os.chmod(full, 0o755 if kind == "x" else 0o644)
            what = hashlib.sha256(part).hexdigest()
        known[path] = (kind, what)


def message(channel, data):
    write(channel, struct.pack(">Q", len(data)))
    write(channel, data)


def work(channel, pipe, order, interpreter, text, report):
    """Runs what an order says; the interpreter, which begins with its first cell. `text` takes what is printed, `report` the end."""
    printed, printing = pipe
    if "cell" in order:
        interpreter = interpreter or Interpreter(printing, (channel, printed))
        interpreter.begin(order["cell"])
        ended, status = watch(channel, printed, text, interpreter.pid, interpreter.done, order["seconds"])
        whole = ended in ("finished", "raised")
    else:
        pid = run_shell(order["shell"], printing, (channel, printed))
        ended, status = watch(channel, printed, text, pid, None, order["seconds"])
        whole = ended == "exited"
    report["ended"], report["status"], report["whole"] = ended, status, whole
    if whole and not settle(interpreter and interpreter.pid):
        report["ended"], report["whole"] = "too many processes", False
    return interpreter


def compare(known, fresh, text, printed, report):
    """Reports how the files differ from `known`; returns what they are. `fresh` takes the contents of new ones."""
    read_all(printed, text)
    if len(text) > LIMITS["output"]:
        report["ended"] = "too much output"
        return known
    try:
        found = scan(known, fresh, report["dropped"])
    except Beyond as error:
        report["ended"], report["why"] = "too many files", str(error)
        return known
    report["remove"] = [path for path in known if path not in found or found[path][0] != known[path][0]]
    report["put"] = [[path, *found[path]] for path in sorted(found) if found[path] != known.get(path)]
    return found


def serve(channel):
    """Takes orders until nobody gives any."""
    printed, printing = os.pipe()
    os.set_blocking(printed, False)
    interpreter, known = None, {}
    while True:
        length = size(channel)
        if length is None:
            os._exit(0)
        order = json.loads(exactly(channel, length))
        data = exactly(channel, size(channel))
        text, fresh, report = bytearray(), {}, {"status": 0, "remove": [], "put": [], "dropped": []}
        try:
            report["ended"] = "no room"
            change(order, data, known)
        except OSError as error:
            report["why"] = str(error)
        else:
            interpreter = work(channel, (printed, printing), order, interpreter, text, report)
            if report.pop("whole"):
                known = compare(known, fresh, text, printed, report)
        parts = []
        for put in report["put"]:
            if put[1] in "fx":
                parts.append(fresh[put[2]])
                put[2] = len(parts[-1])
        message(channel, json.dumps(report).encode())
        message(channel, b"".join(parts))
        message(channel, bytes(text))


channel = os.dup(0)
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
serve(channel)
