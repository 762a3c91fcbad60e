//! Scores of programs: HumanEval by its tests, and programs that would pass tests without solving the task.

use crate::harness::{Scripted, engine, prepared, replied, run, scratch, tables};
use futures_util::future::join_all;
use polity_driver::run::Engine;
use polity_kernel::ask::tool::{Ended, Ran};
use polity_kernel::ask::{Asker, Effect, EffectId, Outcome, ResponseFormat, Value};
use polity_kernel::items::{Program, Tested, program};
use polity_models::models::{Exchange, Provider, Providers};
use polity_models::tools::Tools;
use polity_store::disk::RealDisk;
use polity_store::tables::ColumnData;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs programs with their tests, in parallel as far as the tool allows.
fn all(tested: &[Tested]) -> Vec<Ran> {
    static TOOLS: LazyLock<Tools> = LazyLock::new(Tools::standard);
    TOOLS.check(Ran::PYTHON).unwrap_or_else(|why| panic!("{why}"));
    let id = EffectId { item: 0, round: 0, actor: 0, asker: Asker::Agent, n: 0 };
    let effect = |tested| Effect { id, request: Ran::tested(tested), hidden: None, default: None };
    let effects: Vec<Effect> = tested.iter().map(effect).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let exchanges = runtime.block_on(join_all(effects.iter().map(|effect| TOOLS.answer(effect, 0))));
    let ran = |exchange: Exchange| match exchange.outcome {
        Outcome::Reply { value, .. } => Ran::read(&value).unwrap(),
        other => panic!("{other:?}"),
    };
    exchanges.into_iter().map(|exchange| ran(exchange.unwrap_or_else(|trouble| panic!("{trouble}")))).collect()
}

fn humaneval() -> Vec<(Program, String)> {
    let text = fs::read_to_string(root().join("data/humaneval-60.jsonl")).unwrap();
    let items = text.lines().map(|line| {
        let item: Json = serde_json::from_str(line).unwrap();
        let part = |key: &str| item[key].as_str().unwrap();
        let solution = part("canonical_solution");
        (program(part("prompt"), part("entry_point"), part("test"), solution), solution.to_owned())
    });
    items.collect()
}

#[test]
fn humaneval_is_solved_by_its_solutions_and_by_nothing_else() {
    let items = humaneval();
    assert_eq!(items.len(), 60);
    let bodies: [&dyn Fn(&str) -> String; 4] = [
        &|solution| solution.to_owned(),
        &|_| "    return None\n".to_owned(),
        &|_| "    raise NotImplementedError\n".to_owned(),
        &|solution| format!("    import os\n    os._exit(0)\n{solution}"),
    ];
    for (i, body) in bodies.into_iter().enumerate() {
        let tested: Vec<Tested> = items.iter().map(|(program, solution)| program.scored(&body(solution))).collect();
        for ((program, _), ran) in items.iter().zip(all(&tested)) {
            let told = format!("{}, body {i}: {ran:?}", program.entry_point);
            assert_eq!(ran.is_right(), i == 0, "{told}");
            assert!(!ran.errors.contains("<string>"), "{told}");
            match i {
                0 => assert!(ran.status == 0 && ran.errors.is_empty(), "{told}"),
                1 | 2 => assert!(ran.ended == Ended::Failed && ran.errors.starts_with("Traceback"), "{told}"),
                _ => assert_eq!(ran.errors, "The program ended before its tests did.\n", "{told}"),
            }
        }
    }
    // A whole program in a code fence, including the imports of its beginning.
    let whole: Vec<Tested> = items
        .iter()
        .map(|(program, solution)| program.scored(&format!("Here:\n```python\n{}{solution}```\n", program.prompt)))
        .collect();
    assert!(all(&whole).iter().all(Ran::is_right));
}

/// A secret that a program could look for: it is only in the tests.
const CANARY: &str = "canary-5f2e9c417ab3";

/// A simple function, with tests that use objects a program could have replaced.
fn adder() -> Program {
    let tests = format!(
        "import math\n\
         # {CANARY}\n\
         def check(candidate):\n    \
             assert candidate(1, 2) == 3\n    \
             assert abs(candidate(1.5, 2.25) - 3.75) < 1e-9\n    \
             assert isinstance(candidate(2, 2), int) and candidate(2, 2) == 4\n    \
             assert all(map(lambda n: candidate(n, n) == 2 * n, range(5)))\n    \
             assert len(str(candidate(10, 10))) == 2 and math.sqrt(candidate(8, 8)) == 4.0\n    \
             assert candidate([1], [2]) == [1, 2] and candidate('a', 'b') == 'ab'\n"
    );
    program("def add(a, b):\n    \"\"\"Sum of a and b.\"\"\"\n", "add", &tests, "    return a + b\n")
}

/// Programs that are correct, though in an unusual way.
const HONEST: &[&str] = &[
    "    return a + b\n",
    "    print('working'); return a + b\n",
    "```python\nimport functools\n@functools.lru_cache(maxsize=None)\ndef plus(a, b): return a + b\ndef add(a, b):\n    return a + b if type(a) is list else plus(a, b)\n```",
    // With its own processes, threads and files.
    "    import multiprocessing\n    with multiprocessing.Pool(1) as pool: return pool.apply(sum, [[b], a]) if type(a) is int else a + b\n",
    "    import threading\n    out = []\n    t = threading.Thread(target=lambda: out.append(a + b)); t.start(); t.join(); return out[0]\n",
    "    open('/tmp/note', 'a').write('x'); return a + b\n",
    // Values of types derived from plain ones arrive as plain ones.
    "    import enum\n    class N(int): pass\n    class L(list): pass\n    kinds = {int: N, list: L}\n    return kinds.get(type(a), type(a))(a + b)\n",
    // It changes its argument, which is its own copy.
    "    if type(a) is list: a += b; b.clear(); return a\n    return a + b\n",
    "    import sys; sys.stdout = None; return a + b\n",
];

/// Programs that do not add, but try to pass the tests.
const FORGED: &[&str] = &[
    // The tests' own last output, read from the program's file.
    "    pass\nimport os, re\ntry: w = re.findall('got to its end [0-9a-f]{32}', open('/tmp/program.py').read())[-1]\nexcept IndexError: w = 'got to its end'\nos.write(1, ('\\n' + w + '\\n').encode()); os._exit(0)\n",
    // Early exit, with a success status.
    "    import sys; sys.exit(0)\n",
    "    import os; os._exit(0)\n",
    "    raise SystemExit\n",
    "    pass\nimport sys; sys.exit(0)\n",
    "    pass\nimport os; os.kill(os.getpid(), 9)\n",
    "    import os; os.execv('/bin/true', ['true'])\n",
    // Another `check`, another assertion, other built-in functions, other modules.
    "    pass\ndef check(candidate): pass\nimport sys, builtins\nbuiltins.check = check; sys.modules['__main__'].check = check\n",
    "    return 0\nimport builtins\nbuiltins.AssertionError = type('E', (BaseException,), {})\nbuiltins.abs = lambda x: 0; builtins.all = builtins.isinstance = lambda *_: True\nbuiltins.len = lambda x: 2; builtins.map = lambda *_: []; builtins.range = lambda *_: []\n",
    "    return 0\nabs = lambda x: 0\nall = isinstance = lambda *_: True\nlen = lambda x: 2\nmap = range = lambda *_: []\n",
    "    return 0\nimport sys, types\nm = types.ModuleType('math'); m.sqrt = lambda x: 4.0\nsys.modules['math'] = m; sys.modules['unittest'] = m\n",
    "    return 0\nimport builtins\nbuiltins.__import__ = lambda *_, **__: None; builtins.__build_class__ = lambda *_: None; builtins.compile = builtins.exec = lambda *_: None\n",
    // Objects that are equal to everything.
    "    class Any:\n        def __eq__(self, other): return True\n        def __getattr__(self, name): return lambda *_: self\n        __ne__ = __lt__ = __sub__ = __abs__ = __len__ = __float__ = __eq__\n        __class__ = int\n    return Any()\n",
    "    class Any(int):\n        def __eq__(self, other): return True\n        __lt__ = __eq__\n        __hash__ = int.__hash__\n        __index__ = __int__ = lambda self: 3\n        def to_bytes(self, *_, **__): return b'x'\n        def __reduce__(self): return (print, ())\n    return Any(7)\n",
    "    class Any(str):\n        def __eq__(self, other): return True\n        def __len__(self): return 2\n        def encode(self, *_): return b''\n    return Any('3')\n",
    "    class Any(list):\n        def __eq__(self, other): return True\n        def __iter__(self): return iter([1, 2])\n        def __len__(self): return 2\n    return Any([9])\n",
    "    class Any(float):\n        def __sub__(self, other): return 0\n        def __eq__(self, other): return True\n    return Any(9)\n",
    "    class Any(dict):\n        def __eq__(self, other): return True\n        def items(self): return [(1, 2)]\n    return Any()\n",
    "    class Meta(type):\n        def __eq__(self, other): return True\n        __hash__ = type.__hash__\n        def __instancecheck__(self, it): return True\n    class Any(metaclass=Meta): pass\n    return Any\n",
    // No value at all, and exceptions that end loops or do not derive from `Exception`.
    "    yield a + b\n",
    "    if a == 0: raise StopIteration\n    if type(a) is int and a < 5 and a == b and a != 2: return -1\n    return a + b\n",
    "    if a == 0: raise type('Stop', (StopIteration,), {})\n    return a + b if a != b or a in (2, 8, 10) else -1\n",
    "    raise GeneratorExit\n",
    "    raise type('AssertionError', (BaseException,), {})\n",
    "    raise type('E', (ValueError,), {'__str__': lambda self: 1 / 0, 'args': property(lambda self: 1 / 0)})\n",
    "    raise OSError(10 ** 6, 'x' * 10 ** 6, 'y', None, 'z')\n",
    "    def deeper(n): return deeper(n + 1)\n    return deeper(0)\n",
    // Values of unbounded size.
    "    return 10 ** 10_000_000\n",
    "    return 1 << 8 * 20_000_000\n",
    "    x = []\n    for _ in range(100_000): x = [x]\n    return x\n",
    "    x = []; x.append(x); return x\n",
    "    x = {}; x[0] = x; return x\n",
    "    return 'x' * 100_000_000\n",
    "    return [None] * 10_000_000\n",
    // Output written later, by remaining processes or handlers.
    "    return 0\nimport atexit, os\natexit.register(lambda: os.write(1, b'{\"ended\": \"finished\", \"status\": 0}'))\n",
    "    return 0\nimport threading, os, time\ndef later():\n  while True:\n    for fd in range(1, 128):\n      try: os.write(fd, b'{\"passed\": true}\\n')\n      except OSError: pass\n    time.sleep(0.001)\nthreading.Thread(target=later, daemon=True).start()\n",
    "    return 0\nimport os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork(): os._exit(0)\n  while True:\n    for fd in range(1, 128):\n      try: os.write(fd, b'{\"passed\": true}\\n')\n      except OSError: pass\n    time.sleep(0.001)\n",
    // Files that are loaded instead of others.
    "    return 0\nimport os\nbad = 'import os, builtins\\nbuiltins.all = lambda *_: True\\nsqrt = lambda x: 4.0\\nos.write(1, b\"loaded\")\\nos._exit(0)\\n'\nfor name in 'math sitecustomize usercustomize traceback linecache io random tokenize re json struct codecs encodings'.split(): open('/tmp/' + name + '.py', 'w').write(bad)\nos.makedirs('/tmp/.local/lib/python3/site-packages', exist_ok=True)\nopen('/tmp/.local/lib/python3/site-packages/x.pth', 'w').write('import os; os._exit(0)')\nopen('/tmp/<tests>', 'w').write(bad); open('/tmp/tests.py', 'w').write(bad)\n",
    // Attacks on other processes: signals, debuggers, limits, descriptors.
    "    return 0\nimport os, signal\nfor pid in [*range(2, 12), -1, *range(-12, -1)]:\n  for sign in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGUSR1):\n    if pid != os.getpid() and pid != -os.getpid():\n      try: os.kill(pid, sign); print('GOT IN', pid, sign)\n      except OSError: pass\n",
    "    return 0\nimport ctypes, os, signal\nlibc = ctypes.CDLL(None)\nfor pid in range(2, 12):\n  if pid == os.getpid(): continue\n  try:\n    fd = os.pidfd_open(pid); signal.pidfd_send_signal(fd, 9); print('GOT IN', pid)\n  except OSError: pass\n  try:\n    fd = os.open(f'/proc/{pid}', os.O_RDONLY); signal.pidfd_send_signal(fd, 9); print('GOT IN', pid)\n  except OSError: pass\n  for call in (62, 200):\n    if libc.syscall(call, pid, 9) == 0: print('GOT IN', pid, call)\n  if libc.syscall(234, pid, pid, 9) == 0: print('GOT IN', pid)\n  if libc.ptrace(16, pid, 0, 0) == 0: print('GOT IN', pid)\n",
    "    return 0\nimport fcntl, os, signal\nr, w = os.pipe()\nfor pid in range(1, 12):\n  if pid != os.getpid():\n    for call in (fcntl.F_SETOWN, 15):\n      try:\n        fcntl.fcntl(r, call, pid if call == fcntl.F_SETOWN else bytes([1, 0, 0, 0, pid, 0, 0, 0]))\n        fcntl.fcntl(r, 10, signal.SIGKILL); fcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\n        os.write(w, b'x'); print('GOT IN', pid)\n      except OSError: pass\n",
    "    return 0\nimport resource\nfor pid in range(1, 12):\n  for limit in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE):\n    try:\n      if pid != __import__('os').getpid(): resource.prlimit(pid, limit, (0, 0)); print('GOT IN', pid)\n    except OSError: pass\n",
    "    return 0\nimport os\nfor pid in range(1, 12):\n  for name in ('mem', 'fd/0', 'fd/3', 'fd/4', 'fd/5', 'environ', 'maps', 'auxv', 'cwd', 'root/tmp', '!mem', '!fd/5', '!oom_score_adj', '!clear_refs', '!comm'):\n    if pid != os.getpid():\n      try: print('GOT IN', pid, name, os.open(f'/proc/{pid}/' + name.strip('!'), os.O_WRONLY if name[0] == '!' else os.O_RDONLY))\n      except OSError: pass\n",
    // The tests, in any place where they could be read.
    "    import gc, inspect, sys\n    found = [str(x) for x in gc.get_objects() if isinstance(x, (str, bytes, dict, tuple, list))]\n    frame = sys._getframe()\n    while frame: found += [str(frame.f_locals), str(frame.f_globals), str(frame.f_code.co_consts)]; frame = frame.f_back\n    print([x for x in found if 'cana' + 'ry' in x and 'cana' not in inspect.getsource(add)])\n    return 0\n",
    "    import re\n    response_format = b'cana' + b'ry-[0-9a-f]{12}'\n    mem = open('/proc/self/mem', 'rb', 0)\n    for line in open('/proc/self/maps'):\n        low, high = (int(x, 16) for x in line.split()[0].split('-'))\n        try:\n            mem.seek(low); print(re.findall(response_format, mem.read(high - low)) or '', end='')\n        except (OSError, OverflowError, ValueError): pass\n    return 0\n",
    "    import os\n    for pid in os.listdir('/proc'):\n        for name in ('cmdline', 'comm', 'environ', 'status', 'stat', 'limits', 'mountinfo'):\n            try: print(open(f'/proc/{pid}/{name}', 'rb').read())\n            except OSError: pass\n    return 0\n",
    "    import os\n    for fd in os.listdir('/proc/self/fd'):\n        try:\n            fd = os.open('/proc/self/fd/' + fd, os.O_RDONLY | os.O_NONBLOCK); print(os.read(fd, 1_000_000))\n        except OSError: pass\n    return 0\n",
    // Its connection to the tests: answers that are unsolicited, duplicate, too long, truncated, malformed, or from another process.
    "    return 0\nimport os\nfor fd in range(3, 128):\n  try: os.write(fd, bytes([0, 0, 0, 13]) + bytes(8) + b'T\\0\\0\\0\\0')\n  except OSError: pass\n",
    "    import sys\n    f = sys._getframe()\n    while 'answers' not in f.f_locals: f = f.f_back\n    for _ in range(3): f.f_globals['send'](f.f_locals['answers'], f.f_locals.get('mark', bytes(8)), ('value', a))\n    return 0\n",
    "    import sys, os\n    f = sys._getframe()\n    while 'answers' not in f.f_locals: f = f.f_back\n    if a != 1: os.write(f.f_locals['answers'], b'\\xff' * 50_000_000)\n    return a + b\n",
    "    import os\n    for fd in range(3, 128):\n        try: os.write(fd, b'\\0\\0\\0\\x20' + b'x' * 32)\n        except OSError: pass\n    return a + b\n",
    "    import sys\n    f = sys._getframe()\n    while 'answers' not in f.f_locals: f = f.f_back\n    say = lambda what: f.f_globals['send'](f.f_locals['answers'], f.f_locals['mark'], what)\n    say([('function',), ('missing',), ('loaded', 1), None, (), ('value',), {}][hash(str(a)) % 7]); return a + b\n",
    "    import sys\n    f = sys._getframe()\n    while 'answers' not in f.f_locals: f = f.f_back\n    f.f_globals['send'](f.f_locals['answers'], f.f_locals['mark'], ('raised', 'StopIteration', (), '', 'finished')); return a + b\n",
    "    import os\n    if os.fork() == 0: return 3\n    os.wait(); return 0\n",
    "    import os, time\n    if os.fork(): os._exit(0)\n    time.sleep(0.1); return a + b\n",
    "    import os; os.closerange(3, 128); return a + b\n",
    // Attempts to break the sandbox, so that there is no result.
    "    import fcntl, os\n    for fd in (1, 2): fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)\n    try:\n        while True: os.write(2, b'x' * 4096)\n    except BlockingIOError: return 0\n",
    "    import os; os.closerange(0, 128); os._exit(0)\n",
    "    import os\n    while True:\n        try: os.fork()\n        except OSError: return 0\n",
    "    return bytearray(10 ** 12)\n",
    "    pass\ndel add\n",
    "    pass\nadd = 3\n",
    "    pass\nadd = print\n",
];

#[test]
fn no_program_passes_tests_but_by_its_results() {
    let adder = adder();
    let honest: Vec<Tested> = HONEST.iter().map(|answer| adder.scored(answer)).collect();
    for (answer, ran) in HONEST.iter().zip(all(&honest)) {
        assert!(ran.is_right() && ran.status == 0, "{answer}\n{ran:?}");
    }
    let forged: Vec<Tested> = FORGED.iter().map(|answer| adder.scored(answer)).collect();
    let right: Vec<String> = FORGED
        .iter()
        .zip(all(&forged))
        .filter(|(_, ran)| ran.is_right() || ran.output.contains("GOT IN") || ran.output.contains(CANARY))
        .map(|(answer, ran)| format!("{answer}\n{ran:?}"))
        .collect();
    assert!(right.is_empty(), "{}", right.join("\n\n"));
}

#[test]
fn what_crosses_is_what_was_given() {
    // Every kind of plain data survives a round trip, equal and of the same type.
    let same = "import math\n\
        big = 7 ** 10_000\n\
        values = [None, True, False, 0, -1, 255, -256, big, -big, 0.1, -0.0, math.inf, 5e-324, 1j, complex(-0.0, math.inf), '', 'a\\0\\u20ac\\U0001f600', '\\ud800',\n\
        b'', bytes(range(256)), [], [[], [1, [2]]], (), (1,), {}, {1: 'a', 'b': [2], (1, 2): None}, set(), {1, 'a'}, frozenset({(1, 2)}), {frozenset({1}): 2}]\n\
        for value in values:\n    \
            back = same(value)\n    \
            assert back == value and type(back) is type(value) and (type(value) is int or repr(back) == repr(value))\n    \
            assert same(x=value) == value\n\
        assert math.isnan(same(math.nan)) and math.copysign(1, same(-0.0)) == -1\n\
        deep = []\nfor _ in range(90): deep = [deep]\n\
        assert same(deep) == deep and same([1] * 100_000) == [1] * 100_000\n\
        # Names that the tests do not define are the program's.\n\
        assert TABLE == {'a': 1} and twice(2) == 4 and total == 0\n\
        add(5); assert total == 5\n\
        for bad in (object(), print, iter([]), bytearray()):\n    \
            try: same(bad)\n    \
            except TypeError: continue\n    \
            assert False\n\
        try: missing\n\
        except NameError: pass\n\
        else: assert False\n";
    let program = "TABLE = {'a': 1}\ntotal = 0\ndef same(x): return x\ndef twice(x): return 2 * x\ndef add(n):\n  global total\n  total += n\n";
    // Threads of tests do not get each other's answers.
    let threads = "import threading\nfound = []\ndef ask(i): found.append(twice(i) == 2 * i)\n\
        all = [threading.Thread(target=lambda i=i: [ask(i) for _ in range(50)]) for i in range(8)]\n\
        for t in all: t.start()\nfor t in all: t.join()\nassert found == [True] * 400";
    // Exceptions arrive as their built-in types.
    let raises = "for name, kind in (('key', KeyError), ('own', ValueError), ('zero', ZeroDivisionError), ('stop', RuntimeError), ('unicode', UnicodeDecodeError), ('file', FileNotFoundError)):\n    \
            try: fail(name)\n    \
            except Exception as error: assert type(error) is kind, (name, error)\n    \
            else: assert False\n\
        try: fail('key')\n\
        except KeyError as error: assert error.args == ('k', 1)\n";
    let fail = "class Own(ValueError): pass\ndef fail(name):\n  if name == 'key': raise KeyError('k', 1)\n  if name == 'own': raise Own(object())\n  \
                if name == 'zero': 1 / 0\n  if name == 'stop': raise StopIteration\n  if name == 'unicode': b'\\xff'.decode()\n  if name == 'file': open('/tmp/none')\n";
    let cases = [(program, same), (program, threads), (fail, raises)]
        .map(|(program, tests)| Tested { program: program.into(), tests: tests.into() });
    for ran in all(&cases) {
        assert!(ran.is_right(), "{ran:?}");
    }
}

#[test]
fn how_tests_end_is_told() {
    let told = |program: &str, tests: &str| Tested { program: program.into(), tests: tests.into() };
    let zero = "def f(x):\n    return 1 / x\n";
    let cases = [
        (told(zero, "assert f(1) == 1\nassert f(2) == 1\n"), Ended::Failed, "assert f(2) == 1"),
        // The program's trace, and the line that called it.
        (told(zero, "f(0)"), Ended::Failed, "line 2, in f\n    return 1 / x"),
        (told(zero, "f(0)"), Ended::Failed, "It came from the program"),
        (told(zero, "g(0)"), Ended::Failed, "NameError: name 'g' is not defined"),
        (told(zero, "assert f(1"), Ended::Failed, "SyntaxError"),
        (told("def f(", "f(1)"), Ended::Failed, "SyntaxError"),
        (told("1 / 0", "pass"), Ended::Failed, "ZeroDivisionError"),
        (told("def f(): return object()", "f()"), Ended::Failed, "a value of the type object is no plain data"),
        (told("def f(): open('/etc/shadow')", "f()"), Ended::Forbidden, "FileNotFoundError"),
        (told("open('/etc/shadow')", "pass"), Ended::Forbidden, "FileNotFoundError"),
        (told("def f(): return bytearray(10 ** 12)", "f()"), Ended::TooMuchMemory, "MemoryError"),
        (told("def f():\n  while True: print('x' * 1000)", "f()"), Ended::TooMuchOutput, ""),
        (told("import os\ndef f(): os.kill(os.getpid(), 11)", "f()"), Ended::Killed, ""),
        (told("import sys\ndef f(): sys.exit(3)", "f()"), Ended::Failed, "The program ended before its tests did."),
        // It answers before it is asked.
        (
            told(
                "import sys\ng = sys._getframe(1).f_globals\ng['send'](g['answers_in'], bytes(8), ('value', 1))\ndef f(): return 1",
                "assert f() == 1",
            ),
            Ended::Failed,
            "The program's process answered out of turn.",
        ),
        // Tests may exit like a test runner.
        (told("", "import sys; sys.exit(0); assert False"), Ended::Finished, ""),
        (told("", "import sys; sys.exit(3)"), Ended::Failed, "SystemExit: 3"),
        (told("", "import os; os._exit(0)"), Ended::Failed, "The tests left before their end."),
        (
            told(
                "import os, threading, time\nthreading.Thread(target=time.sleep, args=[99]).start()\ndef f(): os.closerange(3, 99)",
                "f()",
            ),
            Ended::Failed,
            "The program no longer answers its tests.",
        ),
        (
            told(
                "",
                "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.fail('no')\nunittest.main()",
            ),
            Ended::Failed,
            "AssertionError: no",
        ),
        (
            told(
                "def f(): return 2",
                "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(f(), 2)\nunittest.main()",
            ),
            Ended::Finished,
            "Ran 1 test",
        ),
        // They have the same permissions as programs.
        (told("", "open('/etc/shadow')"), Ended::Failed, "FileNotFoundError"),
        (told("", "import socket; socket.socket()"), Ended::Failed, "PermissionError"),
    ];
    let ran = all(&cases.each_ref().map(|(tested, ..)| tested.clone()));
    for ((tested, ended, words), ran) in cases.iter().zip(&ran) {
        assert!(ran.ended == *ended && ran.errors.contains(words), "{tested:?}\n{ran:?}");
        assert!(!ran.errors.contains("<string>"), "{}", ran.errors);
    }
    // Printed output is the program's, then the tests'.
    let printed = all(&[told("print('program')\ndef f(): print('called')", "print('tests'); f()")]).remove(0);
    assert_eq!((printed.ended, printed.output.as_str()), (Ended::Finished, "program\ncalled\ntests\n"));
    // Also through a non-blocking stream of the program, however fast it is read.
    let hurried = told("import os\nos.set_blocking(1, False)\ndef f(): return 900_000", "print('x' * f())");
    for ran in all(&vec![hurried; 12]) {
        assert_eq!((ran.ended, ran.output.len()), (Ended::Finished, 900_001), "{}", ran.errors);
    }
}

/// A provider whose model always gives the same answer.
fn always(answer: &'static str) -> Box<dyn Provider> {
    let answer = move |effect: &Effect, _: u64| {
        let text = || Value::Text(answer.to_owned());
        let value = match &effect.request.response_format {
            ResponseFormat::Record(fields) => Value::Record(fields.iter().map(|_| text()).collect()),
            _ => text(),
        };
        replied(value, answer)
    };
    Box::new(Scripted { name: "one", answer })
}

#[test]
fn a_model_that_forges_is_right_on_nothing() {
    let folder = scratch("scores-forged");
    fs::copy(root().join("data/humaneval-60.jsonl"), folder.join("items.jsonl")).unwrap();
    let correct = |name: &str, answer: &'static str| {
        let scenario = json!({
            "name": "forged", "seed": 1, "rounds": 1, "agents": 1, "model": "one/model", "method": {"kind": "direct"},
            "items": {"file": "items.jsonl", "shape": "humaneval", "count": 20},
        });
        let providers = Providers::of(vec![always(answer), Box::new(Tools::standard())]);
        let engine = Engine { providers: Arc::new(providers), ..engine(Arc::new(RealDisk), 1, None) };
        let out = folder.join(name);
        run(&engine, &prepared(&scenario, &folder), &out).unwrap();
        let items = &tables(&RealDisk, &out)["items"];
        let (_, correct) = items.iter().find(|(name, _)| name == "correct").unwrap();
        let ColumnData::Bool(correct) = correct else { panic!("{correct:?}") };
        correct.clone()
    };
    let forged = "import os,re; w=([\"\"]+re.findall(\"got to its end [0-9a-f]{32}\",open(\"/tmp/program.py\").read()))[-1]; \
                  os.write(1,(\"\\n\"+w+\"\\n\").encode()); os._exit(0)";
    assert_eq!(correct("forged", forged), vec![Some(false); 20]);
    let early = "    import os, sys; print('all tests pass'); sys.stdout.flush(); os._exit(0)";
    assert_eq!(correct("early", early), vec![Some(false); 20]);
}
