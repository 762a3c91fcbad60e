"""The walls of a sandbox, as its first process builds them: what programs may not call, limits of the kernel's, and looks at all processes.

plain.py is read before this text, and what runs programs after it. Being process 1, this process cannot be killed from within, and when
it ends, so does all else in the sandbox.
"""
import ctypes, errno, json, os, resource, signal, sys

LIMITS = json.loads(sys.argv[1])
TICK_MS = 20


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


def confine(tester, seconds):
    """Takes away from this process what no program has, and sets the kernel's limits. `seconds`: processor time of each process, if that is
    limited."""
    os.setsid()
    os.nice(10)  # Whoever watches comes first.
    forbid(tester)
    for what, limit in (
        (resource.RLIMIT_AS, 2 * LIMITS["memory"]),
        (resource.RLIMIT_CPU, resource.RLIM_INFINITY if seconds is None else seconds),
        (resource.RLIMIT_FSIZE, LIMITS["disk"]),
        # This process, and one above the limit, by which it is seen.
        (resource.RLIMIT_NPROC, LIMITS["processes"] + 2),
        # Each pipe holds memory that nothing counts.
        (resource.RLIMIT_NOFILE, 128),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        # The limit above lets a process say that it has come to an end; the kernel kills at the other.
        hard = limit + 1 if what == resource.RLIMIT_CPU and seconds is not None else limit
        resource.setrlimit(what, (limit, hard))


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
