"""The sandbox's first process: takes a program from its standard input, runs it in a child within limits, and reports how it ended.

Standard input is a socket: the program comes in and, if it is to be tested, its tests; a line and a report in JSON go out. Standard output and
error are the program's. Being process 1, this one cannot be killed from within, and when it ends, so does all else in the sandbox.

What stands in plain.py and tests.py is read before this text.
"""
import _thread, ctypes, errno, json, os, resource, select, signal, sys, time

LIMITS = json.loads(sys.argv[1])
WORK = "/tmp"  # The only place that can be written.
PATH = WORK + "/program.py"
SHOWN = ("tmp", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "dev", "proc")
CAUSES = ("too much memory", "too much output", "too many processes", "forbidden")
TICK_MS = 20
GOING_S = 1  # How long a program that is gone for its tests may take to end.


def prctl(*arguments):
    """Process control that Python does not offer. An error means that the sandbox cannot be had."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(*[x if isinstance(x, ctypes.c_void_p) else ctypes.c_ulong(x) for x in arguments]) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def dumpable(yes):
    """Whether processes of the same user may look into this one."""
    prctl(4, int(yes), 0, 0, 0)


def forbid(tester):
    """Takes away system calls: those for memory that no limit counts, those into other processes (process 1 would not be able to watch), and
    sockets, whose memory nothing counts, but for pairs within the program, which are counted. `tester`: the number of a process that no
    signal reaches. They fail with EPERM. The rest of the walls are namespaces'."""
    machine = os.uname().machine
    if machine not in ("x86_64", "aarch64"):
        raise OSError(errno.ENOSYS, "the sandbox is made for x86_64 and aarch64, and not for " + machine)
    intel = machine == "x86_64"
    # On x86_64 and on aarch64: memfd_create, memfd_secret, shmget, msgget, semget, vmsplice, socket, ptrace, process_vm_readv,
    # process_vm_writev, bpf, perf_event_open, userfaultfd, io_uring_setup, add_key, request_key, keyctl, setpriority, sched_setparam,
    # sched_setscheduler, sched_setaffinity, sched_setattr, ioprio_set.
    never = [(319, 279), (447, 447), (29, 194), (68, 186), (64, 190), (278, 75), (41, 198), (101, 117), (310, 270),
             (311, 271), (321, 280), (298, 241), (323, 282), (425, 425), (248, 217), (249, 218), (250, 219), (141, 140), (142, 118),
             (144, 119), (203, 122), (314, 274), (251, 30)]
    # By an argument: the call, which argument, values, and whether it may have only these or none of them.
    # socketpair with AF_UNIX; prlimit64 of the process itself.
    by = [((53, 199), 0, (1,), True), ((302, 261), 0, (0,), True)]
    if tester:
        those = [number & 0xFFFFFFFF for number in (tester, -tester, -1)]
        never += [(200, 130), (424, 424)]  # tkill, pidfd_send_signal.
        # kill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_open; F_SETOWN and F_SETOWN_EX of fcntl, FIOSETOWN and SIOCSPGRP of
        # ioctl, by which the kernel sends a signal.
        by += [(call, 0, those, False) for call in ((62, 129), (234, 131), (129, 138), (297, 240), (434, 434))]
        by += [((72, 25), 1, (8, 15), False), ((16, 29), 1, (0x8901, 0x8902), False)]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, deny, kill = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
    # Another architecture's calls have other numbers.
    code = [(load, 0, 0, 4), (equal, 1, 0, 0xC000003E if intel else 0xC00000B7), (give, 0, 0, kill), (load, 0, 0, 0)]
    if intel:
        code += [(at_least, 0, 1, 0x40000000), (give, 0, 0, deny)]  # x32
    for call in never:
        code += [(equal, 0, 1, call[not intel]), (give, 0, 0, deny)]
    for call, argument, values, only in by:
        code += [(equal, 0, len(values) + 3, call[not intel]), (load, 0, 0, 16 + 8 * argument)]
        code += [(equal, len(values) - i, 0, value) for i, value in enumerate(values)]
        code += [(give, 0, 0, deny if only else allow), (give, 0, 0, allow if only else deny)]
    code += [(give, 0, 0, allow)]
    rules = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    filters = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(rules)))
    prctl(38, 1, 0, 0, 0)  # No new privileges, without which nobody may filter.
    prctl(22, 2, ctypes.c_void_p(ctypes.addressof(filters)))


def stats():
    """(threads, pages in memory) of each process but this one, by its id."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            try:
                with open("/proc/" + name + "/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue  # It has just ended.
            found[name] = (int(fields[17]), int(fields[21]))
    return found


def memory(found):
    """Bytes of memory of all processes. Pages that several share count once, which is only looked at where it matters."""
    page = resource.getpagesize()
    total = sum(pages for _, pages in found.values()) * page
    if total <= LIMITS["memory"]:
        return total
    total = 0
    for name, (_, pages) in found.items():
        try:
            with open("/proc/" + name + "/smaps_rollup", "rb") as file:
                total += next(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
        except PermissionError:
            total += pages * page  # It does not let itself be looked into.
        except (OSError, StopIteration):
            pass  # It has ended.
    return total


def sockets():
    """Sockets of all processes, those on their way from one to another included."""
    with open("/proc/net/sockstat", "rb") as file:
        return int(file.readline().split()[2])


def crowded(found):
    return sum(threads for threads, _ in found.values()) > LIMITS["processes"]


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


def confine(tester):
    """Takes away from this process what no program has, and sets the kernel's limits."""
    os.setsid()
    os.nice(10)  # Whoever watches comes first.
    forbid(tester)
    for what, limit in (
        (resource.RLIMIT_AS, 2 * LIMITS["memory"]),
        (resource.RLIMIT_CPU, LIMITS["seconds"]),
        (resource.RLIMIT_FSIZE, LIMITS["disk"]),
        # This process, and one above the limit, by which it is seen.
        (resource.RLIMIT_NPROC, LIMITS["processes"] + 2),
        # Each pipe holds memory that nothing counts.
        (resource.RLIMIT_NOFILE, 128),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        # The limit above lets a process say that it has come to an end; the kernel kills at the other.
        hard = limit + 1 if what == resource.RLIMIT_CPU else limit
        resource.setrlimit(what, (limit, hard))


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
    confine(tester)
    with open(PATH, "wb") as file:
        file.write(program)
    sys.path.insert(0, WORK)
    sys.excepthook = ended_by
    return main(PATH, builtins), why


def reap(ended):
    """Notes the status of every process that has ended, by its number."""
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        ended[pid] = os.waitstatus_to_exitcode(how)


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


def end_all():
    """Ends all processes but this one, and waits until they are gone."""
    try:
        os.kill(-1, signal.SIGKILL)
        while True:
            os.waitpid(-1, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def size(channel):
    """The length of what comes next; none at the end."""
    try:
        return struct.unpack(">Q", exactly(channel, 8))[0]
    except EOFError:
        return None


if os.getpid() != 1:
    sys.exit("this is no process of a sandbox's own")
del sys.path[0]  # Nothing is ever loaded from where programs write.
dumpable(False)
# What process 1 does not handle does not reach it from within, and this is what Python handles.
signal.signal(signal.SIGINT, signal.SIG_DFL)
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
