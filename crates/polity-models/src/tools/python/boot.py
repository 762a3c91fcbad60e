"""The sandbox's first process: takes a program from its standard input, runs it in a child within limits, and reports how it ended.

Standard input is a socket: the program comes in and, if it is to be tested, its tests; a line and a report in JSON go out. Standard output and
error are the program's. Being process 1, this one cannot be killed from within, and when it ends, so does all else in the sandbox.

What stands in plain.py, walls.py and tests.py is read before this text.
"""
import _thread, errno, json, os, resource, select, signal, sys, time

WORK = "/tmp"  # The only place that can be written.
PATH = WORK + "/program.py"
SHOWN = ("tmp", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "dev", "proc")
CAUSES = ("too much memory", "too much output", "too many processes", "forbidden")
GOING_S = 1  # How long a program that is gone for its tests may take to end.


class Asked:
    """Where in its code the program's first thread last asked for a process. Whether as many were there as may be cannot be looked up
    afterwards: those that were in the way may have ended by then."""

    def __init__(self):
        self.place, self.thread = None, _thread.get_ident()
        sys.addaudithook(self.hear)

    def hear(self, event, _):
        if event in ("os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen") and _thread.get_ident() == self.thread:
            frame = sys._getframe(1)
            # No reference: what a program lets go has to go. Popen is announced some lines before the process is asked for.
            self.place = (id(frame), None if event == "subprocess.Popen" else frame.f_lasti)

    def denied(self, error, trace):
        """Whether it was this that failed."""
        if self.place is None or not isinstance(error, BlockingIOError):
            return False
        while trace.tb_next:
            trace = trace.tb_next
        frame, at = self.place
        return id(trace.tb_frame) == frame and at in (None, trace.tb_lasti)


def cause(error):
    """Which wall an error comes from that ended a program, as far as that can be told; else none."""
    if isinstance(getattr(error, "reason", None), OSError):
        error = error.reason  # As urllib wraps it.
    if isinstance(error, MemoryError):
        return "too much memory"
    number = error.errno if isinstance(error, OSError) else None
    if (number == errno.EAGAIN or isinstance(error, RuntimeError)) and crowded(stats()):
        return "too many processes"
    if number == errno.ENOMEM:
        return "too much memory"
    if number in (errno.EFBIG, errno.ENOSPC):
        return "too much output"
    network = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ECONNREFUSED)
    # Numbers below zero: a name could not be looked up.
    if number is not None and (number in network or number < 0):
        return "forbidden"
    name = getattr(error, "filename", None)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if isinstance(name, str):
        first = os.path.abspath(name).split("/")[1]
        writable = first == "tmp"
        if number in (errno.EPERM, errno.EACCES, errno.EROFS) and not writable or number == errno.ENOENT and first not in SHOWN:
            return "forbidden"
    elif number in (errno.EPERM, errno.EACCES, errno.EROFS):
        return "forbidden"
    return None


def begin(program, notes, tester):
    """Makes this process the program's; what is left is to run it in the scope given, and to tell which wall caused an exception."""
    me, asked = os.getpid(), Asked()

    def why(error):
        trace = error.__traceback__
        return "too many processes" if trace and asked.denied(error, trace) else cause(error)

    def ended_by(kind, error, trace):
        # Without the lines of this text that run the program.
        while trace and own(trace.tb_frame):
            trace = trace.tb_next
        error = error.with_traceback(trace)
        if os.getpid() == me:
            try:
                os.write(notes, (why(error) or "").encode())
            except OSError:
                pass  # The program has closed it.
        sys.__excepthook__(kind, error, trace)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    dumpable(True)
    confine(tester, LIMITS["seconds"])
    with open(PATH, "wb") as file:
        file.write(program)
    sys.path.insert(0, WORK)
    sys.excepthook = ended_by
    return main(PATH, builtins), why


def noted(notes):
    """What the program's process has noted of its end. The program may have written there, too: no more than that is believed."""
    try:
        note = os.read(notes, 100)
    except BlockingIOError:
        return "failed"
    return next((cause for cause in CAUSES if cause.encode() == note), "failed")


def how(status, notes):
    """How a program ended that has ended by itself."""
    if status == -signal.SIGXCPU:
        return "too long"
    if status == -signal.SIGXFSZ:
        return "too much output"
    if status < 0:
        return "killed"
    return "finished" if status == 0 else noted(notes)


class Verdict:
    """What the tests' process says at its end: a line of JSON. It may be the work of a model, too, and is read as such."""

    def __init__(self, fd):
        self.fd, self.parts, self.size = fd, [], 0
        os.set_blocking(fd, False)

    def read(self):
        """The line, once it is there."""
        while self.size < 30 * LIMITS["output"]:
            try:
                part = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return None
            if not part:
                return None
            self.parts.append(part)
            self.size += len(part)
            if part.endswith(b"\n"):
                break
        try:
            said = json.loads(b"".join(self.parts))
            return said if isinstance(said, dict) else {}
        except (ValueError, RecursionError):
            return {}


def tested(said):
    """How tests ended that have said so."""
    if said.get("passed") is True:
        return "finished", 0
    return (said["cause"] if said.get("cause") in CAUSES else "failed"), 1


def watch(child, tester, channel, notes, verdict):
    """Waits for the end of the program or of its tests, or for a limit; returns how it ended, its status, and what is to be printed."""
    due, ended, gone = time.monotonic() + LIMITS["seconds"], {}, None
    poll = select.poll()
    poll.register(channel, 0)  # Only that nobody is there any more.
    poll.register(os.pidfd_open(child), select.POLLIN)
    if tester:
        poll.register(verdict.fd, select.POLLIN)
    full = 0
    while True:
        if any(fd == channel for fd, _ in poll.poll(TICK_MS)):
            os._exit(1)
        reap(ended)
        if tester:
            said = verdict.read()
            if said is not None and not said.get("gone"):
                return *tested(said), said
            if child in ended:
                early = how(ended[child], notes)
                words = {"errors": "The program ended before its tests did.\n"} if ended[child] >= 0 else {}
                return "failed" if early == "finished" else early, ended[child], words
            if said is not None:
                gone = time.monotonic()
                poll.unregister(verdict.fd)
            if gone is None and tester in ended:
                early = how(ended[tester], notes)
                return "failed" if early == "finished" else early, ended[tester], {"errors": "The tests left before their end.\n"}
            if gone is not None and time.monotonic() > gone + GOING_S:
                return "failed", 1, {"errors": "The program no longer answers its tests.\n"}
        elif child in ended:
            return how(ended[child], notes), ended[child], {}
        found = stats()
        room = os.statvfs(WORK)
        # Processes that end while they are counted leave their share of pages to those that are counted next: looked at twice.
        full = full + 1 if memory(found) > LIMITS["memory"] else 0
        for cut, reached in (
            ("too many processes", crowded(found)),
            ("too much memory", full > 1 or sockets() > LIMITS["sockets"]),
            ("too much output", room.f_files - room.f_ffree > LIMITS["files"]),
            ("too long", time.monotonic() >= due),
        ):
            if reached:
                return cut, -signal.SIGKILL, {}


channel = os.dup(0)
program = exactly(channel, size(channel))
wanted = size(channel)
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
notes_out, notes_in = os.pipe()
os.set_blocking(notes_out, False)
asks_out, asks_in = os.pipe()
answers_out, answers_in = os.pipe()
if wanted is not None:
    LIMITS["processes"] += 1  # The tests' own.
os.write(channel, b"\n")  # The sandbox stands.
child = os.fork()
if child == 0:
    # The tests are still on their way: this process has never had them.
    for fd in (channel, notes_out, asks_in, answers_out):
        os.close(fd)
    if wanted is None:
        os.close(asks_out), os.close(answers_in)
        scope, _ = begin(program, notes_in, None)
        exec(compile(program, PATH, "exec"), scope)
    else:
        mark, first = receive(asks_out)
        scope, why = begin(program, notes_in, first[2][0])  # Whom no signal reaches.
        exec(compile(program, PATH, "exec"), scope)
        serve(scope, asks_out, answers_in, mark, why)
else:
    tester, verdict_out = None, None
    if wanted is not None:
        tests = exactly(channel, wanted)
        verdict_out, verdict_in = os.pipe()
        tester = os.fork()
        if tester == 0:
            for fd in (channel, notes_out, notes_in, asks_out, answers_in, verdict_out):
                os.close(fd)
            test(tests, asks_in, answers_out, verdict_in)
        os.close(verdict_in)
    for fd in (notes_in, asks_out, asks_in, answers_out, answers_in):
        os.close(fd)
    ended, status, said = watch(child, tester, channel, notes_out, tester and Verdict(verdict_out))
    if tester:
        # Whatever the tests say is said after all others have ended: none of them can read it.
        end_all()
        for fd, text in ((1, said.get("output")), (2, said.get("errors"))):
            os.set_blocking(fd, True)  # The program has had them, too.
            write(fd, str(text or "").encode("utf-8", "replace"))
    os.write(channel, json.dumps({"ended": ended, "status": status}).encode())
    os._exit(0)
