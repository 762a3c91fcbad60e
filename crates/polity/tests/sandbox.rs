//! Tests of the sandbox of `tool/python`: malicious programs, sandboxes whose run is killed, tools in whole runs.

use crate::harness;

use crate::harness::{assert_same_tables, engine, events, leaves, prepared, replay, resume, run, scratch, tables};
use futures_util::future::join_all;
use polity_driver::run::{Engine, RunStatus};
use polity_kernel::Invalid;
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Answer, Asker, ChatMessage, Effect, EffectId, Outcome, Request, ResponseFormat, Role, Usage};
use polity_kernel::method::{Brief, Method, Records, TeamContext, Verdict};
use polity_kernel::policy::Fault;
use polity_kernel::registry::{LeafFiles, Registry};
use polity_kernel::scenario::Budget;
use polity_models::models::{Provider, ProviderError, Providers};
use polity_models::tools::python::{Limits, Python};
use polity_models::tools::{Tool, Tools, Working};
use polity_store::disk::RealDisk;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(work)
}

/// The default tool.
fn standard() -> &'static Tools {
    static TOOLS: LazyLock<Tools> = LazyLock::new(Tools::standard);
    &TOOLS
}

/// With more time, for programs that reach another limit: their speed depends on the machine and its load.
fn patient() -> &'static Tools {
    static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
        let limits = Limits { seconds: 100, ..Limits::STANDARD };
        Tools::of(vec![Box::new(Python::with(limits))])
    });
    &TOOLS
}

/// With a second for each program.
fn short() -> &'static Tools {
    static TOOLS: LazyLock<Tools> = LazyLock::new(|| {
        let limits = Limits { seconds: 1, ..Limits::STANDARD };
        Tools::of(vec![Box::new(Python::with(limits))])
    });
    &TOOLS
}

fn effect(request: Request) -> Effect {
    let id = EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 };
    Effect { id, request, hidden: None, default: None }
}

/// Runs programs, in parallel as far as the tool allows; each answer is a reply without a cost.
fn all(tools: &Tools, programs: &[String]) -> Vec<Ran> {
    tools.check(Ran::PYTHON).unwrap_or_else(|why| panic!("{why}"));
    let effects: Vec<Effect> = programs.iter().map(|program| effect(Ran::request(program.as_str()))).collect();
    let exchanges = block_on(join_all(effects.iter().map(|effect| tools.answer(effect, 0))));
    let ran = |exchange: Result<polity_models::models::Exchange, ProviderError>| {
        let exchange = exchange.unwrap_or_else(|trouble| panic!("{trouble}"));
        assert_eq!(exchange.usage, Usage { latency_ms: exchange.usage.latency_ms, ..Usage::default() });
        let Outcome::Reply { value, raw, repaired: false } = exchange.outcome else { panic!("{exchange:?}") };
        let ran = Ran::read(&value).unwrap();
        assert_eq!(serde_json::from_str::<Ran>(&raw).unwrap(), ran);
        ran
    };
    exchanges.into_iter().map(ran).collect()
}

fn python(program: impl Into<String>) -> Ran {
    all(standard(), &[program.into()]).remove(0)
}

/// Checks that each program ends as expected; reports all that do not.
#[track_caller]
fn ends(tools: &Tools, cases: &[(&str, Ended)]) -> Vec<Ran> {
    let programs: Vec<String> = cases.iter().map(|(program, _)| (*program).into()).collect();
    let ran = all(tools, &programs);
    let wrong = cases.iter().zip(&ran).filter(|((_, ended), ran)| ran.ended != *ended);
    let wrong: Vec<String> =
        wrong.map(|(case, ran)| format!("{case:?} came to {:?} {:.600}", ran.ended, ran.errors)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    ran
}

#[test]
fn ends_are_told_apart_and_what_is_printed_is_kept() {
    let ran = ends(
        standard(),
        &[
            ("print('out'); import sys; print('err', file=sys.stderr)", Ended::Finished),
            ("import sys; sys.exit(3)", Ended::Failed),
            ("import os; os._exit(7)", Ended::Failed),
            ("1 / 0", Ended::Failed),
            ("def (", Ended::Failed),
            ("def f(): f()\nf()", Ended::Failed),
            ("open('missing')", Ended::Failed),
            ("import os; os.kill(os.getpid(), 9)", Ended::Killed),
            ("import ctypes; ctypes.string_at(0)", Ended::Killed),
            ("import os; os.write(1, b'a\\xff\\0b')", Ended::Finished),
            // Output to files other than its own streams is not trusted.
            (
                "import os\nfor fd in range(3, 256):\n  try: os.write(fd, b'finished')\n  except OSError: pass\n1 / 0",
                Ended::Failed,
            ),
            // Process 1 is out of its reach.
            (
                "import os, signal\nfor s in signal.valid_signals():\n  try: os.kill(1, s)\n  except OSError: pass\nopen('/proc/1/mem', 'r+b')",
                Ended::Forbidden,
            ),
            (
                "import atexit, threading\natexit.register(print, 'late')\nthreading.Thread(target=print, args=['thread']).start()",
                Ended::Finished,
            ),
            ("", Ended::Finished),
            ("import resource; resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))", Ended::Forbidden),
            ("import os; os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))", Ended::Forbidden),
            ("import os; os.setpriority(os.PRIO_PROCESS, 1, 19)", Ended::Forbidden),
            (
                "import resource; resource.setrlimit(resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK))",
                Ended::Finished,
            ),
            ("import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", Ended::Failed),
        ],
    );
    let kept = |i: usize| (ran[i].status, ran[i].output.as_str());
    assert_eq!((kept(0), ran[0].errors.as_str()), ((0, "out\n"), "err\n"));
    assert_eq!((kept(1), kept(2), kept(7), kept(8)), ((3, ""), (7, ""), (-9, ""), (-11, "")));
    let trace = "Traceback (most recent call last):\n  File \"/tmp/program.py\", line 1, in <module>\n";
    assert!(ran[3].errors.starts_with(trace), "{}", ran[3].errors);
    assert!(ran[3].errors.ends_with("ZeroDivisionError: division by zero\n"), "{}", ran[3].errors);
    assert_eq!((kept(9), kept(12)), ((0, "a\u{fffd}\0b"), (0, "thread\nlate\n")));
    // Legitimate features work: processes, pools, shared locks, pipes between a program's own processes.
    let pool = "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n  for how in ('fork', 'spawn'):\n    \
                with m.get_context(how).Pool(2) as pool: print(pool.map(f, range(4)))";
    let pipe = "import multiprocessing as m\na, b = m.Pipe()\np = m.Process(target=lambda: b.send('own')); p.start(); print(a.recv()); p.join()";
    let both = "import asyncio\nasync def f(): await asyncio.sleep(0.01); return 'own'\nfor _ in range(50): print(asyncio.run(f()), end='')";
    let ran = ends(standard(), &[(pool, Ended::Finished), (pipe, Ended::Finished), (both, Ended::Finished)]);
    assert_eq!((ran[0].output.as_str(), ran[1].output.as_str()), ("[0, 1, 4, 9]\n[0, 1, 4, 9]\n", "own\n"));
    assert_eq!(ran[2].output, "own".repeat(50));
}

#[test]
fn what_can_be_the_same_every_time_is() {
    let tell = "import os, sys, time, socket\nprint(hash('x'), set('abcdef'), time.tzname, sys.argv, sys.path[0], os.getcwd(), os.getpid())\n\
                print(sorted(os.environ.items()), os.getuid(), socket.gethostname(), os.listdir('.'), sys.stdin.read())";
    let ran = all(standard(), &[tell.into(), tell.into()]);
    assert_eq!(ran[0].ended, Ended::Finished, "{}", ran[0].errors);
    assert_eq!(ran[0], ran[1]);
    // Nothing of this process's environment.
    for (name, value) in std::env::vars().filter(|(name, value)| value.len() > 8 && name.starts_with("CARGO")) {
        assert!(!ran[0].output.contains(&value), "{name}");
    }
}

#[test]
fn programs_that_take_too_much_are_stopped_and_told_by_what() {
    ends(
        short(),
        &[
            ("while True: pass", Ended::TooLong),
            ("import time; time.sleep(1e6)", Ended::TooLong),
            (
                "import signal\nfor s in signal.valid_signals() - {9, 19}: signal.signal(s, lambda *_: None)\nwhile True: pass",
                Ended::TooLong,
            ),
            ("import os\nif os.fork():\n  os.wait()\nelse:\n  os.setsid()\n  while True: pass", Ended::TooLong),
        ],
    );
    let handler = "import os, signal, time\ndef again(*_):\n  os.fork(); os.kill(os.getpid(), signal.SIGUSR1)\n\
                   signal.signal(signal.SIGUSR1, again)\nos.kill(os.getpid(), signal.SIGUSR1)\ntime.sleep(9)";
    let hidden = "import os, time\nfor i in range(1000):\n  if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(9)\n    os._exit(0)\ntime.sleep(9)";
    let gone = "import os, time\npids = []\ntry:\n  while True:\n    pids.append(os.fork())\n    if pids[-1] == 0: time.sleep(9)\n\
                finally:\n  for pid in pids: os.kill(pid, 9); os.wait()";
    let gone_programs = "import subprocess\ntry:\n  all = []\n  while True: all.append(subprocess.Popen(['sleep', '9']))\n\
                         finally:\n  for one in all: one.kill(); one.wait()";
    ends(
        patient(),
        &[
            ("import os\nwhile True: os.fork()", Ended::TooManyProcesses),
            ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", Ended::TooManyProcesses),
            // Which process fails first, and how many are left when it is checked, depends on speed.
            (gone, Ended::TooManyProcesses),
            (gone_programs, Ended::TooManyProcesses),
            (
                "import os\nif os.fork() == 0: os._exit(0)\nr, w = os.pipe(); os.set_blocking(r, False); os.read(r, 1)",
                Ended::Failed,
            ),
            (handler, Ended::TooManyProcesses),
            (hidden, Ended::TooManyProcesses),
            (
                "import threading, time\nfor i in range(1000): threading.Thread(target=time.sleep, args=[9]).start()",
                Ended::TooManyProcesses,
            ),
            (
                "import os, time\nfor i in range(60):\n  if os.fork() == 0: time.sleep(0.2); os._exit(0)\nfor i in range(60): os.wait()",
                Ended::Finished,
            ),
        ],
    );
    let many = "import os, time\nfor i in range(12):\n  if os.fork() == 0:\n    x = b'x' * 100_000_000; time.sleep(9)\ntime.sleep(9)";
    let shared = "import os, time\nx = b'x' * 200_000_000\nfor i in range(20):\n  if os.fork() == 0: time.sleep(0.3); os._exit(0)\nfor i in range(20): os.wait()";
    ends(
        patient(),
        &[
            ("x = bytearray(10 ** 12)", Ended::TooMuchMemory),
            ("x = []\nwhile True: x.append(bytearray(10 ** 7))", Ended::TooMuchMemory),
            (
                "import mmap\nm = mmap.mmap(-1, 900_000_000)\nfor i in range(0, len(m), 4096): m[i] = 1",
                Ended::TooMuchMemory,
            ),
            (many, Ended::TooMuchMemory),
            // Memory shared between processes counts once.
            (shared, Ended::Finished),
            // Memory that no limit would count.
            ("import os; os.memfd_create('x')", Ended::Forbidden),
            (
                "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nif c.shmget(0, 10 ** 9, 0o1600) < 0: raise OSError(ctypes.get_errno(), 'shmget')",
                Ended::Forbidden,
            ),
        ],
    );
    let links = "import zipfile\nwith zipfile.ZipFile('z', 'w') as z:\n  for i in range(30_000):\n    \
                 link = zipfile.ZipInfo(f'l{i}'); link.external_attr = 0o120777 << 16; z.writestr(link, '/etc/shadow')\n\
                 import os\nwith zipfile.ZipFile('z') as z:\n  for link in z.infolist(): os.symlink(z.read(link), link.filename)";
    let ran = ends(
        patient(),
        &[
            ("while True: print('x' * 1000)", Ended::TooMuchOutput),
            ("import sys\nwhile True: sys.stderr.write('x' * 1000)", Ended::TooMuchOutput),
            ("print('x' * 1_000_000)", Ended::TooMuchOutput),
            ("print('x' * 999_999)", Ended::Finished),
            ("import os\nif os.fork() == 0:\n  while True: os.write(1, b'x' * 1000)\nos.wait()", Ended::TooMuchOutput),
            ("f = open('f', 'wb')\nwhile True: f.write(b'x' * 10_000_000)", Ended::TooMuchOutput),
            ("for i in range(100): open(f'f{i}', 'wb').write(b'x' * 1_000_000)", Ended::TooMuchOutput),
            ("for i in range(100): open(f'/dev/shm/f{i}', 'wb').write(b'x' * 1_000_000)", Ended::TooMuchOutput),
            (links, Ended::TooMuchOutput),
        ],
    );
    assert!(ran.iter().all(|ran| ran.output.len() <= 1_000_000 && ran.errors.len() <= 1_000_000));
    assert_eq!((ran[0].output.len(), ran[3].output.len()), (1_000_000, 1_000_000));
}

#[test]
fn nothing_outside_is_written_or_read() {
    let folder = scratch("sandbox-outside");
    let own = tempfile::tempdir().unwrap();
    // Both can be read and written by anybody.
    for folder in [&folder, own.path()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(folder.join("secret"), "canary").unwrap();
        fs::set_permissions(folder.join("secret"), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let name = format!("polity-evil-{}", std::process::id());
    let mut paths: Vec<PathBuf> =
        ["/", "/etc", "/usr", "/usr/bin", "/var/tmp", "/dev"].iter().map(|dir| Path::new(dir).join(&name)).collect();
    paths.extend([home.join(&name), folder.join(&name), folder.join("secret")]);
    let programs: Vec<String> = paths.iter().map(|path| format!("open({path:?}, 'w').write('evil')")).collect();
    let cases: Vec<(&str, Ended)> = programs.iter().map(|program| (program.as_str(), Ended::Forbidden)).collect();
    ends(standard(), &cases);
    for path in paths.iter().filter(|path| !path.ends_with("secret")) {
        assert!(!path.exists(), "{} was written", path.display());
    }
    // Its /tmp is private.
    let evil = Path::new("/tmp").join(&name);
    assert_eq!(python(format!("open({evil:?}, 'w').write('evil')")).ended, Ended::Finished);
    assert!(!evil.exists());
    for folder in [&folder, own.path()] {
        assert_eq!(fs::read_to_string(folder.join("secret")).unwrap(), "canary");
    }
    let (secret, near) = (folder.join("secret"), own.path().join("secret"));
    let link = format!("import os\nos.symlink({secret:?}, 'link'); print(open('link').read())");
    let near = format!("print(open({near:?}).read())");
    let ran = ends(
        standard(),
        &[
            (&format!("print(open({secret:?}).read())"), Ended::Forbidden),
            ("print(open('/etc/shadow').read())", Ended::Forbidden),
            (&format!("import os; print(os.listdir({home:?}))"), Ended::Forbidden),
            ("print(open('/proc/1/environ').read())", Ended::Forbidden),
            // If they are missing in a private folder, nothing shows that they were meant to be outside.
            (&link, Ended::Failed),
            (&near, Ended::Failed),
            (
                "import os; print(sorted(os.listdir('/')), [p for p in os.listdir('/proc') if p.isdigit()])",
                Ended::Finished,
            ),
            ("import os; os.setuid(0)", Ended::Failed),
            ("import ctypes; print(ctypes.CDLL(None).unshare(0x10000000))", Ended::Finished),
            ("open('/proc/sys/kernel/hostname', 'w')", Ended::Forbidden),
        ],
    );
    assert!(ran.iter().all(|ran| !ran.output.contains("canary") && !ran.output.contains("root:")));
    assert!(ran[6].output.ends_with("['1', '2']\n") && !ran[6].output.contains("home"), "{}", ran[6].output);
    assert_eq!(ran[8].output, "-1\n", "no user namespace within");
}

#[test]
fn nobody_outside_is_reached() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let all_addresses = TcpListener::bind("0.0.0.0:0").unwrap();
    let name = format!("polity-sandbox-{}", std::process::id());
    let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let connect = |port: u16| format!("import socket; socket.create_connection(('127.0.0.1', {port}), 3)");
    let (near, all_near) =
        (connect(tcp.local_addr().unwrap().port()), connect(all_addresses.local_addr().unwrap().port()));
    let local = format!("import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}')");
    ends(
        standard(),
        &[
            (&near, Ended::Forbidden),
            (&all_near, Ended::Forbidden),
            (&local, Ended::Forbidden),
            ("import socket; socket.create_connection(('1.1.1.1', 53), 3)", Ended::Forbidden),
            (
                "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('1.1.1.1', 53))",
                Ended::Forbidden,
            ),
            ("import socket; socket.getaddrinfo('example.com', 80)", Ended::Forbidden),
            ("import urllib.request; urllib.request.urlopen('http://example.com', timeout=3)", Ended::Forbidden),
            // Sockets of virtual machines to their host are not covered by namespaces.
            ("import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", Ended::Forbidden),
            ("import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", Ended::Forbidden),
        ],
    );
    tcp.set_nonblocking(true).unwrap();
    all_addresses.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    assert!(tcp.accept().is_err() && all_addresses.accept().is_err() && unix.accept().is_err(), "somebody came");
    // The listener is reachable from outside of the sandbox.
    let here = Command::new("python3").args(["-c", &near]).status().unwrap();
    assert!(here.success() && tcp.accept().is_ok());
}

/// Kernel memory that a program uses and that no limit counts is bounded.
#[test]
fn what_the_kernel_would_hold_is_bounded() {
    let families =
        ["AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_CAN", "AF_TIPC"];
    let each: Vec<String> = families
        .iter()
        .flat_map(|family| ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW"].map(|kind| (family, kind)))
        .map(|(family, kind)| {
            format!("import socket\ntry: socket.socket(socket.{family}, socket.{kind})\nexcept PermissionError as e: print(e); raise")
        })
        .collect();
    let cases: Vec<(&str, Ended)> = each.iter().map(|program| (program.as_str(), Ended::Forbidden)).collect();
    for ran in ends(standard(), &cases) {
        assert_eq!(ran.output, "[Errno 1] Operation not permitted\n");
    }
    let server = "import socket; socket.create_server(('127.0.0.1', 0))";
    // Pairs within the program are counted, in any of its processes, or in transit between two.
    let hundreds = "import socket, time\nall = [socket.socketpair() for _ in range(60)]\ntime.sleep(20)";
    let processes = "import os, socket, time\nfor _ in range(60):\n  if os.fork() == 0:\n    all = []\n    while True:\n      try: all.append(socket.socketpair())\n      except OSError: time.sleep(9)\n\
                     \n      for s in all[-1]:\n        s.setblocking(False)\n        try:\n          while True: s.send(b'x' * 65536)\n        except BlockingIOError: pass\ntime.sleep(20)";
    let sent = "import array, socket, time\na, b = socket.socketpair()\nfor _ in range(50):\n  c, d = socket.socketpair()\n  \
                a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [c.fileno(), d.fileno()]))])\n  c.close(); d.close()\ntime.sleep(20)";
    let other = "import socket; socket.socketpair(socket.AF_INET)";
    let pipes = "import os\nall = []\nwhile True: all.append(os.pipe())";
    let splice = "import ctypes, errno\nc = ctypes.CDLL(None, use_errno=True)\nassert c.vmsplice(1, None, 0, 0) < 0\nraise OSError(ctypes.get_errno(), 'vmsplice')";
    ends(
        patient(),
        &[
            (server, Ended::Forbidden),
            (other, Ended::Forbidden),
            (hundreds, Ended::TooMuchMemory),
            (processes, Ended::TooMuchMemory),
            (sent, Ended::TooMuchMemory),
            (splice, Ended::Forbidden),
        ],
    );
    let ran = python(pipes);
    assert!(ran.ended == Ended::Failed && ran.errors.contains("Too many open files"), "{ran:?}");
    // The same calls by other numbers: those of x32, and those of 32-bit programs.
    if cfg!(target_arch = "x86_64") {
        let x32 = "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nassert c.syscall(0x40000000 + 41, 2, 1, 0) < 0\nraise OSError(ctypes.get_errno(), 'socket')";
        let gate = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(bytes([0xb8, 102, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n\
                    ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()";
        ends(standard(), &[(x32, Ended::Forbidden), (gate, Ended::Killed)]);
    }
}

/// Only programs are visible of the system, not the owner's other files.
#[test]
fn of_the_system_only_programs_are_shown() {
    let ran = python(
        "import os\nfor p in ('/usr/local/etc', '/usr/local/src', '/usr/src'):\n  print(os.listdir(p) if os.path.exists(p) else [])\nopen('/usr/local/etc/x', 'w')",
    );
    assert_eq!((ran.ended, ran.output.as_str()), (Ended::Forbidden, "[]\n[]\n[]\n"), "{}", ran.errors);
}

#[test]
fn fifty_at_once_do_not_meet() {
    let program = |i: usize| {
        format!(
            "import os, time\nopen('mine', 'x').write('{i}')\ntime.sleep(0.02)\nprint(open('mine').read(), len(os.listdir('/proc')) > 2)"
        )
    };
    let programs: Vec<String> = (0..50).map(program).collect();
    for (i, ran) in all(standard(), &programs).into_iter().enumerate() {
        assert_eq!((ran.ended, ran.output), (Ended::Finished, format!("{i} True\n")), "{}", ran.errors);
    }
}

#[test]
fn only_a_program_can_be_asked_for() {
    let trouble = |request: Request| block_on(standard().answer(&effect(request), 0)).unwrap_err();
    let good = Ran::request("print(1)");
    for request in [
        Request { response_format: ResponseFormat::Text, ..good.clone() },
        Request { messages: Arc::new(Vec::new()), ..good.clone() },
        Request {
            messages: Arc::new(vec![ChatMessage::text(Role::System, "x"), ChatMessage::text(Role::User, "y")]),
            ..good.clone()
        },
        Request { messages: Arc::new(vec![ChatMessage::text(Role::Assistant, "x")]), ..good.clone() },
    ] {
        assert!(matches!(trouble(request), ProviderError::Never { .. }));
    }
    let providers = Providers::standard();
    let error = |model: &str| providers.for_model(model).map(Provider::name).unwrap_err();
    assert!(error("tool/pyton").contains("did you mean `tool/python`?"));
    assert_eq!(providers.for_model(Ran::PYTHON).map(Provider::name), Ok("tool"));
}

#[test]
fn without_a_sandbox_nothing_runs_and_it_is_said_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let doctor = |path: &Path| {
        let said = Command::new(env!("CARGO_BIN_EXE_polity"))
            .args(["doctor", "--json"])
            .env("PATH", path)
            .current_dir(&folder)
            .output()
            .unwrap();
        let said: Value = serde_json::from_slice(&said.stdout).unwrap();
        let of = |check: &&Value| check["check"] == "sandbox";
        let check = said["checks"].as_array().unwrap().iter().find(of).unwrap();
        (check["status"].as_str().unwrap().to_owned(), check["message"].as_str().unwrap().to_owned())
    };
    let (status, message) = doctor(folder.path());
    assert!(
        status == "warn" && message.contains("`bwrap` is not installed (on Debian and Ubuntu: apt install bubblewrap"),
        "{message}"
    );
    // One that is not permitted, and one that would run programs without isolation.
    let bwrap = folder.path().join("bwrap");
    let pretend = |script: &str| {
        fs::write(&bwrap, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).unwrap();
        doctor(folder.path())
    };
    let (status, message) = pretend("echo 'bwrap: No permissions to create new namespace' >&2; exit 1");
    assert!(status == "warn" && message.contains("No permissions to create new namespace"), "{message}");
    let (status, message) = pretend("while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"");
    assert!(status == "warn" && message.contains("no process of a sandbox's own"), "{message}");
    let (status, message) = doctor(Path::new(&std::env::var_os("PATH").unwrap()));
    assert_eq!(status, "ok", "{message}");
}

// ------------------------------------------------------------------ whole runs

/// A team of one with a tool: the question is a program, the answer its output.
struct Runner;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Method for Runner {
    const NAME: &'static str = "runner";
    const SUMMARY: &'static str = "Run the question";
    const RECORDS: &'static [Records] = &[Records { name: "answer", doc: "what the program printed" }];
    type Params = Nothing;

    fn open(_: Nothing, _: usize, _: u32) -> Result<Self, Invalid> {
        Ok(Runner)
    }

    async fn run(&self, context: &mut TeamContext<'_>) -> Result<Verdict, Fault> {
        let program = ChatMessage::text(Role::User, context.item.question.clone());
        let ran = context.ask_as::<Ran>(Brief::new(0, vec![program], Ran::response_format())).await?;
        let answer = ran
            .map(|ran| format!("{}: {}", ran.ended.name(), ran.output.trim()))
            .map_err(|why| Fault(why.to_string()))?;
        context.record(0, 0, answer.clone());
        Ok(Verdict { answer: Some(answer) })
    }
}

fn with_runner() -> &'static Registry {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
        let mut registry = leaves();
        registry.method::<Runner>(LeafFiles::default());
        registry
    });
    &REGISTRY
}

/// A run of programs; the last of them never ends.
fn scenario(folder: &Path, programs: &[String]) -> Value {
    let line = |program: &String| json!({"question": program, "answer": "finished: 42"}).to_string() + "\n";
    fs::write(folder.join("items.jsonl"), programs.iter().map(line).collect::<String>()).unwrap();
    json!({
        "name": "programs", "seed": 1, "rounds": 1, "agents": 1, "model": Ran::PYTHON,
        "method": {"kind": "runner"}, "items": {"file": "items.jsonl", "answer": "answer"},
        "budget": {"cost_usd": 0.01},
    })
}

/// Returns the answers of a run, by item.
fn answers(run: &Path) -> Vec<Answer> {
    let (events, _) = events(Arc::new(RealDisk), run).unwrap();
    let each = |answers: Vec<Answer>| <[Answer; 1]>::try_from(answers).unwrap();
    harness::answers(&events).into_values().flat_map(each).collect()
}

fn runner(tools: Tools) -> Engine<'static> {
    let engine = engine(Arc::new(RealDisk), 1, None);
    Engine { registry: with_runner(), providers: Arc::new(Providers::of(vec![Box::new(tools)])), ..engine }
}

/// A tool that must not be asked.
struct Never;

impl Tool for Never {
    fn name(&self) -> &'static str {
        "python"
    }

    fn gives(&self) -> ResponseFormat {
        Ran::response_format()
    }

    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    fn takes(&self) -> RangeInclusive<usize> {
        1..=2
    }

    fn work<'a>(&'a self, texts: Vec<&'a str>) -> Working<'a> {
        panic!("it was asked: {texts:?}")
    }
}

#[test]
fn what_programs_gave_is_journaled_replayed_and_never_run_again() {
    let folder = scratch("sandbox-run");
    let mut programs: Vec<String> = (0..12).map(|i| format!("print({i} * 42, end='')")).collect();
    programs.push("import time; print(time.time_ns())".into());
    programs.push("1 / 0".into());
    let scenario = prepared(&scenario(&folder, &programs), &folder);
    let (whole, cut) = (folder.join("whole"), folder.join("cut"));
    let summary = run(&runner(Tools::standard()), &scenario, &whole).unwrap();
    let kept = answers(&whole);
    assert_eq!((summary.totals.answers, kept.len()), (14, 14));
    assert!(!summary.simulated && kept.iter().all(|answer| answer.usage.cost_usd == 0.0));
    // With no tool available.
    let again = replay(&runner(Tools::of(vec![Box::new(Never)])), &whole).unwrap();
    assert_eq!(again.digest, summary.digest);
    // Resumed without the record of its end: journaled answers, including their times, are not run again.
    harness::copy_folder(&whole, &cut);
    fs::remove_file(cut.join("journal/00000002.journal")).unwrap();
    let journal = cut.join("journal/00000001.journal");
    let bytes = fs::read(&journal).unwrap();
    fs::write(&journal, &bytes[..bytes.len() - 1]).unwrap();
    harness::forget_the_unrecorded(&cut);
    let resumed = resume(&runner(Tools::of(vec![Box::new(Never)])), &cut).unwrap();
    assert_eq!(resumed.digest, summary.digest);
    assert_same_tables(&tables(&RealDisk, &whole), &tables(&RealDisk, &cut), "cut");
}

#[test]
fn calls_of_tools_have_a_limit_of_their_own() {
    let folder = scratch("sandbox-limit");
    let programs: Vec<String> = (0..8).map(|i| format!("print({i} * 42, end='')")).collect();
    let limited = |limit: Option<u64>| {
        let mut scenario = scenario(&folder, &programs);
        // Limits on models do not affect tools.
        scenario["budget"] = json!({"calls": 0, "cost_usd": 0});
        if let Some(limit) = limit {
            scenario["budget"]["tool_calls"] = json!(limit);
        }
        prepared(&scenario, &folder)
    };
    let engine = runner(Tools::standard());
    let free = run(&engine, &limited(None), &folder.join("free")).unwrap();
    let stopped = run(&engine, &limited(Some(3)), &folder.join("limited")).unwrap();
    assert_eq!((free.status, free.totals.tools), (RunStatus::Done, 8));
    assert_eq!((stopped.status, stopped.totals.tools), (RunStatus::Budget, 3), "{stopped:?}");
    assert_eq!(stopped.reason.as_deref(), Some("the budget of the run is 3 tool calls, of which 3 have been made"));
    let more = Engine { budget: Budget { tool_calls: Some(8), ..Budget::default() }, ..runner(Tools::standard()) };
    let resumed = resume(&more, &folder.join("limited")).unwrap();
    assert_eq!((resumed.status, resumed.totals.tools, resumed.digest), (RunStatus::Done, 8, free.digest));
}

#[test]
fn what_scores_an_answer_is_no_call_of_the_team() {
    let folder = scratch("sandbox-scored");
    let scenario = json!({
        "name": "scored", "seed": 1, "rounds": 1, "agents": 1, "model": "sim/medium", "method": {"kind": "direct"},
        "items": {"file": "../../data/humaneval-60.jsonl", "shape": "humaneval", "count": 3}, "budget": {"tool_calls": 0},
    });
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let engine = harness::engine(Arc::new(RealDisk), 1, None);
    let summary = run(&engine, &prepared(&scenario, here), &folder.join("run")).unwrap();
    assert_eq!((summary.status, summary.totals.tools), (RunStatus::Done, 3), "{summary:?}");
}

const RUN: &str = "POLITY_SANDBOX_RUN";

/// Not a test, but the process that the next test kills.
#[test]
fn a_run_that_is_killed() {
    let Some(folder) = std::env::var_os(RUN).map(PathBuf::from) else { return };
    let hang = "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(1000)\n  os._exit(0)\nwhile True: time.sleep(1)";
    let programs: Vec<String> = ["print(42)".to_owned(), hang.to_owned()].into();
    let scenario = prepared(&scenario(&folder, &programs), &folder);
    let limits = Limits { seconds: 100, ..Limits::STANDARD };
    let _ = run(&runner(Tools::of(vec![Box::new(Python::with(limits))])), &scenario, &folder.join("run"));
}

/// Returns the processes below this one, with their start times, so that they are not confused.
fn below(root: u32) -> BTreeSet<(u32, String)> {
    let all: Vec<(u32, u32, String)> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| process(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .collect();
    let (mut found, mut known) = (BTreeSet::new(), BTreeSet::from([root]));
    while let Some((pid, _, began)) = all.iter().find(|(pid, parent, _)| known.contains(parent) && !known.contains(pid))
    {
        known.insert(*pid);
        found.insert((*pid, began.clone()));
    }
    found
}

/// Returns its id, its parent's, and its start time.
fn process(pid: u32) -> Option<(u32, u32, String)> {
    let mut stat = String::new();
    fs::File::open(format!("/proc/{pid}/stat")).ok()?.read_to_string(&mut stat).ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    (fields[0] != "Z").then_some((pid, fields[1].parse().ok()?, fields[19].to_owned()))
}

#[test]
fn a_killed_run_leaves_nothing_behind() {
    let folder = scratch("sandbox-kill");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", concat!(module_path!(), "::a_run_that_is_killed").split_once("::").unwrap().1])
        .env(RUN, &folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    // bwrap, process 1, the program, and its child in a session of its own, which process 1 has adopted.
    let found = loop {
        let found = below(child.id());
        if found.len() >= 4 && journaled(&folder.join("run")) {
            break found;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain: {found:?}");
        sleep(Duration::from_millis(20));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let began = Instant::now();
    loop {
        let left: Vec<_> =
            found.iter().filter(|(pid, began)| process(*pid).is_some_and(|(_, _, now)| now == *began)).collect();
        if left.is_empty() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "left behind: {left:?}");
        sleep(Duration::from_millis(20));
    }
    // The run continues; journaled programs are not run again, and the other program now ends.
    let summary = resume(
        &runner(Tools::of(vec![Box::new(Python::with(Limits { seconds: 1, ..Limits::STANDARD }))])),
        &folder.join("run"),
    )
    .unwrap();
    let kept = answers(&folder.join("run"));
    let ended = |i: usize| kept[i].heard().map(|value| Ran::read(&value).unwrap().ended);
    assert_eq!((summary.totals.answers, ended(0), ended(1)), (2, Ok(Ended::Finished), Ok(Ended::TooLong)));
}

/// Returns whether the first program's answer is in the journal.
fn journaled(run: &Path) -> bool {
    let read = events(Arc::new(RealDisk), run).ok();
    read.is_some_and(|(events, _)| !harness::answers(&events).is_empty())
}
