"""The sandbox's first process: takes a program from its standard input, runs it in a child within limits, and reports how it ended.

Standard input is a socket: the program comes in, up to its end, and a line and a report in JSON go out. Standard output and error are the
program's. Being process 1, this one can not be killed from within, and when it ends, so does all else in the sandbox.
"""
import _thread, ctypes, errno, json, os, platform, resource, select, signal, struct, sys, time

LIMITS = json.loads(sys.argv[1])
WORK = "/tmp"  # The only place that can be written.
PATH = WORK + "/program.py"
SHOWN = ("tmp", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "dev", "proc")
TICK_MS = 20


def prctl(*arguments):
    """Process control that Python does not offer. An error means that the sandbox can not be had."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(*[x if isinstance(x, ctypes.c_void_p) else ctypes.c_ulong(x) for x in arguments]) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def dumpable(yes):
    """Whether processes of the same user may look into this one."""
    prctl(4, int(yes), 0, 0, 0)


def forbid():
    """Takes away system calls for memory that no limit counts, into other processes (process 1 would not be able to watch), and sockets
    that a network namespace does not hold (AF_VSOCK). They fail with EPERM. The rest of the walls are namespaces'."""
    # Audit architecture, socket, prlimit64, and: memfd_create, memfd_secret, shmget, msgget, semget, ptrace, process_vm_readv,
    # process_vm_writev, bpf, perf_event_open, userfaultfd, io_uring_setup, add_key, request_key, keyctl, setpriority, sched_setparam,
    # sched_setscheduler, sched_setaffinity, sched_setattr, ioprio_set.
    machines = {
        "x86_64": (0xC000003E, 41, 302, (319, 447, 29, 68, 64, 101, 310, 311, 321, 298, 323, 425, 248, 249, 250, 141, 142, 144, 203, 314, 251)),
        "aarch64": (0xC00000B7, 198, 261, (279, 447, 194, 186, 190, 117, 270, 271, 280, 241, 282, 425, 217, 218, 219, 140, 118, 119, 122, 274, 30)),
    }
    machine = platform.machine()
    if machine not in machines:
        raise OSError(errno.ENOSYS, "the sandbox is made for x86_64 and aarch64, and not for " + machine)
    architecture, socket, prlimit, calls = machines[machine]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, deny, kill = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000
    code = [(load, 0, 0, 4), (equal, 1, 0, architecture), (give, 0, 0, kill), (load, 0, 0, 0)]
    if machine == "x86_64":
        code += [(at_least, 0, 1, 0x40000000), (give, 0, 0, deny)]  # x32
    for call in calls:
        code += [(equal, 0, 1, call), (give, 0, 0, deny)]
    # Only with these as their first argument: AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; a process's own limits.
    for call, allowed in ((socket, (1, 2, 10, 16)), (prlimit, (0,))):
        code += [(equal, 0, len(allowed) + 3, call), (load, 0, 0, 16)]
        code += [(equal, len(allowed) - i, 0, value) for i, value in enumerate(allowed)]
        code += [(give, 0, 0, deny), (give, 0, 0, allow)]
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


def crowded(found):
    return sum(threads for threads, _ in found.values()) > LIMITS["processes"]


class Asked:
    """Where in its code the program's first thread last asked for a process. Whether as many were there as may be can not be looked up
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


def begin(program, notes):
    """Makes this process the program's; what is left is to run it."""
    import builtins, types

    me, asked = os.getpid(), Asked()

    def ended_by(kind, error, trace):
        if os.getpid() == me:
            denied = trace and asked.denied(error, trace)
            os.write(notes, ("too many processes" if denied else cause(error) or "").encode())
        # Without the line of this file that runs the program.
        sys.__excepthook__(kind, error.with_traceback(trace and trace.tb_next), trace and trace.tb_next)

    os.setsid()
    os.nice(10)  # Whoever watches comes first.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dumpable(True)
    forbid()
    for what, limit in (
        (resource.RLIMIT_AS, 2 * LIMITS["memory"]),
        (resource.RLIMIT_CPU, LIMITS["seconds"]),
        (resource.RLIMIT_FSIZE, LIMITS["disk"]),
        # This process, and one above the limit, by which it is seen.
        (resource.RLIMIT_NPROC, LIMITS["processes"] + 2),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        # The limit above lets a process say that it has come to an end; the kernel kills at the other.
        hard = limit + 1 if what == resource.RLIMIT_CPU else limit
        resource.setrlimit(what, (limit, hard))
    with open(PATH, "wb") as file:
        file.write(program)
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = PATH, builtins
    sys.modules["__main__"] = main
    sys.argv, sys.path[0] = [PATH], WORK
    sys.excepthook = ended_by
    return main.__dict__


def reap(child):
    """The status of the program, once it has ended; takes leave of whatever else has."""
    status = None
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = os.waitstatus_to_exitcode(how)


def noted(notes):
    """What the program's process has noted of its end. The program may have written there, too: no more than that is believed."""
    try:
        note = os.read(notes, 100)
    except BlockingIOError:
        return "failed"
    causes = ("too much memory", "too much output", "too many processes", "forbidden")
    return next((cause for cause in causes if cause.encode() == note), "failed")


def watch(child, channel, notes):
    """Waits for the program's end or for a limit; returns how it ended and its status."""
    due = time.monotonic() + LIMITS["seconds"]
    poll = select.poll()
    poll.register(channel, 0)  # Only that nobody is there any more.
    poll.register(os.pidfd_open(child), select.POLLIN)
    full = 0
    while True:
        if any(fd == channel for fd, _ in poll.poll(TICK_MS)):
            os._exit(1)
        status = reap(child)
        if status is not None:
            if status == -signal.SIGXCPU:
                return "too long", status
            if status == -signal.SIGXFSZ:
                return "too much output", status
            if status < 0:
                return "killed", status
            return ("finished" if status == 0 else noted(notes)), status
        found = stats()
        room = os.statvfs(WORK)
        # Processes that end while they are counted leave their share of pages to those that are counted next: looked at twice.
        full = full + 1 if memory(found) > LIMITS["memory"] else 0
        for ended, reached in (
            ("too many processes", crowded(found)),
            ("too much memory", full > 1),
            ("too much output", room.f_files - room.f_ffree > LIMITS["files"]),
            ("too long", time.monotonic() >= due),
        ):
            if reached:
                return ended, -signal.SIGKILL


if os.getpid() != 1:
    sys.exit("this is no process of a sandbox's own")
dumpable(False)
# What process 1 does not handle does not reach it from within, and this is what Python handles.
signal.signal(signal.SIGINT, signal.SIG_DFL)
channel = os.dup(0)
program = b"".join(iter(lambda: os.read(channel, 65536), b""))
os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
notes_out, notes_in = os.pipe()
os.set_blocking(notes_out, False)
os.write(channel, b"\n")  # The sandbox stands.
child = os.fork()
if child == 0:
    os.close(channel)
    os.close(notes_out)
    scope = begin(program, notes_in)
    exec(compile(program, PATH, "exec"), scope)
else:
    os.close(notes_in)
    ended, status = watch(child, channel, notes_out)
    os.write(channel, json.dumps({"ended": ended, "status": status}).encode())
    os._exit(0)
