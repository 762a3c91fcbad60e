//! Tests of whole calls.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use super::*;
use polity_kernel::tool::EffectClass;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;
use tempfile::TempDir;
use tokio::runtime::Runtime;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.block_on(work)
}

/// A workspace in a folder that ends with it, and the state of a session.
struct Team {
    workspace: Workspace,
    state: String,
    folder: TempDir,
}

fn start(files: &[(&str, &str)]) -> Start {
    Start::Files(files.iter().map(|(path, text)| ((*path).into(), text.as_bytes().to_vec())).collect())
}

fn limited(files: &[(&str, &str)], limits: Limits) -> Team {
    let folder = TempDir::new().unwrap();
    let workspace = Workspace::open(&folder.path().join("store"), start(files), &Workspace::TOOLS, limits).unwrap();
    Team { workspace, state: String::new(), folder }
}

fn team(files: &[(&str, &str)]) -> Team {
    limited(files, Limits::STANDARD)
}

fn sandbox(change: impl FnOnce(&mut python::Limits)) -> Limits {
    let mut limits = Limits::STANDARD;
    change(&mut limits.sandbox);
    limits
}

impl Team {
    fn at(&self, tool: &str, arguments: &Value, state: &str) -> Result<ToolOutput, ProviderError> {
        block_on(self.workspace.call(tool, arguments.as_object().unwrap(), state))
    }

    /// Makes a call on the state of the session, which moves on.
    fn call(&mut self, tool: &str, arguments: Value) -> ToolOutput {
        let output = self.at(tool, &arguments, &self.state).unwrap_or_else(|error| panic!("{tool}: {error}"));
        self.state.clone_from(&output.state);
        output
    }

    #[track_caller]
    fn good(&mut self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments);
        assert!(!output.error, "{}", output.text);
        output.text
    }

    /// A call that the model sees fail, and that changes nothing.
    #[track_caller]
    fn bad(&mut self, tool: &str, arguments: Value) -> String {
        let before = self.state.clone();
        let output = self.call(tool, arguments);
        assert!(output.error, "{}", output.text);
        assert!(before.is_empty() || output.state == before, "the state has changed: {}", output.text);
        output.text
    }

    #[track_caller]
    fn python(&mut self, code: &str) -> String {
        self.good("python", json!({"code": code}))
    }

    #[track_caller]
    fn shell(&mut self, command: &str) -> String {
        self.good("shell", json!({"command": command}))
    }

    #[track_caller]
    fn read(&mut self, path: &str) -> String {
        self.good("read_file", json!({"path": path}))
    }

    /// Opens the store again, as a run that was killed and is resumed does.
    fn resumed(self, files: &[(&str, &str)]) -> Team {
        let Team { workspace, state, folder } = self;
        drop(workspace);
        let store = folder.path().join("store");
        let workspace = Workspace::open(&store, start(files), &Workspace::TOOLS, Limits::STANDARD).unwrap();
        Team { workspace, state, folder }
    }

    fn packs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("store")).unwrap();
        let mut packs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        packs.retain(|path| path.extension().is_some_and(|extension| extension == "pack"));
        packs.sort();
        packs
    }
}

#[test]
fn a_session_keeps_its_variables_and_its_files() {
    let mut team = team(&[("data/a.txt", "one\n")]);
    assert_eq!(team.python("x = open('data/a.txt').read().strip()"), "(no output)");
    assert_eq!(team.python("x"), "'one'\n");
    assert_eq!(
        team.python("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('out'); 1 + 1"),
        "out\nerr\nout\n2\n"
    );
    team.python("import os\nos.makedirs('new/deep')\nopen('new/deep/b.txt', 'w').write(x * 2)");
    assert_eq!(team.read("new/deep/b.txt"), "     1\toneone\n");
    assert_eq!(team.shell("cat new/deep/b.txt; pwd; echo $HOME; ls"), "oneone/work\n/tmp\ndata\nnew\n");
    team.good("write_file", json!({"path": "c.py", "text": "def f(): return 7\n"}));
    assert_eq!(team.python("import c; c.f()"), "7\n");
    team.shell("rm -r new; mkdir empty");
    assert_eq!(team.python("os.listdir('.'), os.listdir('empty')").trim(), "(['empty', 'c.py', 'data'], [])".trim());
}

#[test]
fn an_exception_is_shown_and_the_session_goes_on() {
    let mut team = team(&[("lib.py", "def fail():\n    raise ValueError('no luck')\n")]);
    team.python("x = 5");
    let output = team.call("python", json!({"code": "x = 6\nimport lib\nlib.fail()"}));
    assert!(output.error);
    let expected = "Traceback (most recent call last):\n  File \"<cell 2>\", line 3, in <module>\n    lib.fail()\n  \
                    File \"/work/lib.py\", line 2, in fail\n    raise ValueError('no luck')\nValueError: no luck\n";
    assert_eq!(output.text, expected);
    assert_eq!(team.python("x"), "6\n");
    for (code, shown) in [
        ("def (", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("def f(): f()\nf()", "RecursionError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("class E(Exception):\n  def __str__(self): raise self\nraise E", "E"),
        ("import socket; socket.socket()", "PermissionError"),
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("open('/usr/x', 'w')", "Read-only file system"),
        ("x = 'a' * (3 << 30)", "MemoryError"),
    ] {
        let output = team.call("python", json!({"code": code}));
        assert!(output.error && output.text.contains(shown), "{code}: {}", output.text);
    }
    assert_eq!(team.python("x"), "6\n");
    let deep = team.call("python", json!({"code": "def f(n): return 1 / n if n == 0 else f(n - 1)\nf(200)"}));
    assert!(deep.text.lines().count() < 40, "{}", deep.text);
}

/// What a sequence of calls comes to: outputs and states.
fn outputs(team: &mut Team, calls: &[(&str, Value)]) -> Vec<(String, bool, String)> {
    let mut outputs = Vec::new();
    for (tool, arguments) in calls {
        let ToolOutput { text, error, state } = team.call(tool, arguments.clone());
        outputs.push((text, error, state));
    }
    outputs
}

fn sequence() -> Vec<(&'static str, Value)> {
    vec![
        ("python", json!({"code": "n = 1\nlog = open('log', 'a')\nprint('a', file=log, flush=True)"})),
        ("write_file", json!({"path": "m.py", "text": "v = 1\n"})),
        (
            "python",
            json!({"code": "import m, os\nn += m.v\nprint('b', file=log, flush=True)\nn, sorted(os.listdir())"}),
        ),
        (
            "shell",
            json!({"command": "cat log; echo c >> log; ln log hard; mkdir d; ln -s ../m.py d/link; chmod +x m.py; sh -c 'exit 3'"}),
        ),
        ("edit_file", json!({"path": "d/link", "old": "1", "new": "2"})),
        ("python", json!({"code": "import importlib\nimportlib.reload(m)\n1 / 0"})),
        (
            "python",
            json!({"code": "n, m.v, {x: os.stat(x).st_mode & 0o777 for x in sorted(os.listdir())}, open('log').read(), {'x', 'y'}"}),
        ),
        ("list_files", json!({})),
    ]
}

#[test]
fn equal_calls_give_equal_outputs_and_states_whether_or_not_processes_live() {
    let files = [("a.txt", "one\n")];
    let calls = sequence();
    let expected = outputs(&mut team(&files), &calls);
    assert_eq!(outputs(&mut team(&files), &calls), expected);
    // No process outlives its call.
    let mut cold = limited(&files, Limits { live: 0, ..Limits::STANDARD });
    assert_eq!(outputs(&mut cold, &calls), expected);
    // The run is killed after each call.
    let mut again = team(&files);
    let mut all = Vec::new();
    for call in &calls {
        all.extend(outputs(&mut again, std::slice::from_ref(call)));
        again = again.resumed(&files);
    }
    assert_eq!(all, expected);
    let texts: Vec<&str> = expected.iter().map(|(text, ..)| text.as_str()).collect();
    assert_eq!(texts[3], "a\nb\n(exit status 3)");
    assert!(texts[5].ends_with("ZeroDivisionError: division by zero\n"), "{}", texts[5]);
    let shown = "(2, 2, {'a.txt': 420, 'd': 493, 'hard': 420, 'log': 420, 'm.py': 493}, 'a\\nb\\nc\\n', {'x', 'y'})\n";
    assert_eq!(texts[6].replace("{'y', 'x'}", "{'x', 'y'}"), shown);
    assert!(
        texts[7].contains("d/link -> ../m.py\n") && texts[7].contains("m.py (6 bytes, executable)"),
        "{}",
        texts[7]
    );
}

#[test]
fn calls_on_an_older_version_branch_from_it() {
    let mut team = team(&[]);
    team.python("x = [1]\nopen('f', 'w').write('1')");
    let first = team.state.clone();
    assert_eq!(team.python("x.append(2); open('f', 'w').write('12'); x"), "[1, 2]\n");
    let second = team.state.clone();
    team.state.clone_from(&first);
    assert_eq!(team.python("x.append(3); x, open('f').read()"), "([1, 3], '1')\n");
    let other = team.state.clone();
    team.state.clone_from(&first);
    assert_eq!(team.shell("cat f"), "1");
    assert_eq!(team.state, first);
    team.state = second;
    assert_eq!(team.python("x, open('f').read()"), "([1, 2], '12')\n");
    team.state = first;
    assert_eq!(team.python("x.append(3); x, open('f').read()"), "([1, 3], '1')\n");
    assert_eq!(team.state, other);
    team.state = String::new();
    assert!(team.call("python", json!({"code": "x"})).text.contains("NameError"));
}

#[test]
fn sessions_at_the_same_time_do_not_meet() {
    let team = team(&[]);
    let run = |name: usize| {
        let mut state = String::new();
        for i in 0..4 {
            let code = format!(
                "import os\nseen = globals().get('seen', []) + [{name}]\nopen('f{i}', 'w').write('{name}')\nseen, len(os.listdir())"
            );
            let output = team.at("python", &json!({"code": code}), &state).unwrap();
            let seen = vec![name.to_string(); i + 1].join(", ");
            assert_eq!(output.text, format!("([{seen}], {})\n", i + 1));
            state = output.state;
        }
    };
    std::thread::scope(|scope| {
        for name in 0..4 {
            scope.spawn(move || run(name));
        }
    });
    // From one version at the same time.
    let first = team.at("python", &json!({"code": "x = 1"}), "").unwrap().state;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let output = team.at("python", &json!({"code": "x += 1; x"}), &first).unwrap();
                assert_eq!(output.text, "2\n");
            });
        }
    });
}

#[test]
fn only_some_processes_are_kept() {
    let team = limited(&[], Limits { live: 2, ..Limits::STANDARD });
    for i in 0..4 {
        team.at("python", &json!({"code": format!("x = {i}")}), "").unwrap();
    }
    assert_eq!(team.workspace.shared.live().len(), 2);
}

#[test]
fn a_cell_beyond_a_limit_changes_nothing() {
    let cases = [
        ("while True: pass", "ran longer than 1 seconds", sandbox(|limits| limits.seconds = 1)),
        ("import time\ntime.sleep(100)", "ran longer than 1 seconds", sandbox(|limits| limits.seconds = 1)),
        ("while True: print('x' * 999)", "printed more than 1000000 bytes", Limits::STANDARD),
        (
            "x = [bytearray(1 << 20) for _ in range(300)]\nimport time\ntime.sleep(9)",
            "memory",
            sandbox(|limits| limits.memory = 200_000_000),
        ),
        ("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "processes", Limits::STANDARD),
        ("import os\nos._exit(4)", "ended the Python process (status 4)", Limits::STANDARD),
        (
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "ended the Python process (status -9)",
            Limits::STANDARD,
        ),
        ("for i in range(20000): open(str(i), 'w').close()", "files", Limits::STANDARD),
        ("for i in range(101): open(str(i), 'w').close()", "files", sandbox(|limits| limits.files = 100)),
        ("for i in range(9):\n  with open(str(i), 'w') as f: f.truncate(60_000_000)", "files", Limits::STANDARD),
        (
            "import os\nfor i in range(50):\n  os.mkdir('d' * 100); os.chdir('d' * 100)",
            "longer than 1000 bytes",
            Limits::STANDARD,
        ),
    ];
    for (code, expected, limits) in cases {
        let mut team = limited(&[("a", "1")], limits);
        team.python("x = 5");
        let text = team.bad(
            "python",
            json!({"code": format!("x = 6\nopen('a', 'w').write('2')\nopen('b', 'w').close()\n{code}")}),
        );
        assert!(text.contains(expected) && text.contains("as it was before this call"), "{code}: {text:.500}");
        assert_eq!(team.python("x, open('a').read()"), "(5, '1')\n", "{code}");
    }
}

#[test]
fn a_command_beyond_a_limit_changes_nothing() {
    let mut team = team(&[("a", "1")]);
    for (command, seconds, expected) in [
        (
            "echo 2 > a; echo so far; sleep 100",
            1,
            "ran longer than 1 seconds and was stopped. The workspace is as it was before this call. It had printed:\nso far\n",
        ),
        // Time enough on a busy machine.
        ("echo 2 > a; while true; do echo flood; done", 60, "printed more than"),
        ("bomb() { bomb | bomb & }; bomb; sleep 9", 1, "was stopped"),
    ] {
        let text = team.bad("shell", json!({"command": command, "seconds": seconds}));
        assert!(text.contains(expected), "{text:.500}");
    }
    assert_eq!(team.read("a"), "     1\t1\n");
    // The disk is full: the program sees it.
    let full = team.call("shell", json!({"command": "for i in 1 2 3 4 5; do head -c 30000000 /dev/zero > f$i; done"}));
    assert!(full.error && full.text.contains("No space left"), "{}", full.text);
    // Processes that a command leaves behind end with it.
    let mut team = limited(&[], Limits::STANDARD);
    assert_eq!(team.shell("(sleep 0.3; echo late > late) & echo now"), "now\n");
    assert_eq!(team.shell("sleep 0.5; ls"), "(no output)");
}

#[test]
fn a_cell_leaves_no_process_behind_and_its_threads_stand_still_between_calls() {
    let mut team = team(&[]);
    team.python("import os, time\nif os.fork() == 0:\n  time.sleep(0.2); open('late', 'w').close(); time.sleep(9)");
    team.python("import threading\nn = 0\ndef count():\n  global n\n  while True: n += 1; time.sleep(0.001)\nthreading.Thread(target=count, daemon=True).start()");
    let before: u64 = team.python("n").trim().parse().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let after: u64 = team.python("n").trim().parse().unwrap();
    assert!(after < before + 100, "{before} {after}");
    assert_eq!(team.python("os.listdir()"), "[]\n");
    let forked =
        team.python("pid = os.fork()\nif pid == 0:\n  print('child')\nelse:\n  os.waitpid(pid, 0); print('parent')");
    assert_eq!(forked, "child\nparent\n");
}

#[test]
fn ten_thousand_files_are_kept() {
    let mut team = team(&[]);
    let made = "import os\nfor i in range(100):\n  os.mkdir(f'd{i}')\n  for j in range(98): open(f'd{i}/{j}', 'w').write(f'{i} {j}')";
    team.python(made);
    assert_eq!(team.packs().len(), 2, "one pack for each version");
    assert_eq!(team.shell("find . -type f | wc -l; cat d99/97"), "9800\n99 97");
    assert_eq!(team.read("d5/7"), "     1\t5 7\n");
    assert!(team.good("list_files", json!({})).contains("(the first 500 of 9900 entries"));
    let mut team = team.resumed(&[]);
    assert_eq!(team.python("len(os.listdir()), open('d99/97').read()"), "(100, '99 97')\n");
    team.shell("touch $(seq 1 100)");
    let text = team.bad("write_file", json!({"path": "one.txt", "text": ""}));
    assert!(text.contains("10001 files and folders; 10000 is the limit"), "{text}");
}

#[test]
fn links_stay_within_the_workspace_or_are_removed() {
    let mut team = team(&[("d/a.txt", "one\n")]);
    let text = team.shell(
        "ln -s /etc/passwd p; ln -s ../../etc d/up; ln -s d/a.txt ok; ln -s /work/d abs; ln -s /workshop no; ln -s loop loop
         mkdir -p q/r; ln -s ../.. q/r/top; ln -s q/r/top/../usr out; ln -s missing/../../usr out2; ln -s nothing dangling
         mkfifo fifo; printf x > $'bad\\xff'; mkdir $'dir\\xff'; touch $'dir\\xff/in' $'line\\nbreak'; ln -s $'\\xff' strange",
    );
    for (name, why) in [
        ("p", "a link that leads out of the workspace, to /etc/passwd"),
        ("d/up", "a link that leads out"),
        ("no", "a link that leads out"),
        ("out", "a link that leads out"),
        ("out2", "a link that leads out"),
        ("fifo", "it is a pipe, a socket or a device"),
        ("strange", "its name or its target is not UTF-8"),
        ("bad\\\\xff", "its name or its target is not UTF-8"),
        ("dir\\\\xff", "its name or its target is not UTF-8"),
        ("line\\nbreak", "its name has a control character"),
    ] {
        let line = text.lines().find(|line| line.starts_with(&format!("`{name}` was removed")));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}: {text}");
    }
    assert_eq!(text.lines().count(), 10, "{text}");
    assert_eq!(team.shell("ls").replace('\n', " "), "abs d dangling loop ok q ");
    assert_eq!(team.read("abs/a.txt"), "     1\tone\n");
    assert_eq!(team.read("q/r/top/ok"), "     1\tone\n");
    team.good("write_file", json!({"path": "ok", "text": "two\n"}));
    assert_eq!(team.shell("cat d/a.txt; test -L ok && echo link"), "two\nlink\n");
    team.good("write_file", json!({"path": "dangling", "text": "new"}));
    assert_eq!(team.read("nothing"), "     1\tnew\n");
    assert!(team.bad("read_file", json!({"path": "loop"})).contains("have no end"));
    // A live session that makes a link where a file was: no file tool sees more than a version.
    team.python("import os\nos.rename('d', 'e'); os.symlink('/etc', 'd')");
    assert!(team.bad("read_file", json!({"path": "d/passwd"})).contains("there is no file"));
    assert_eq!(team.python("os.path.lexists('d'), os.path.exists('e')"), "(False, True)\n");
    // A link whose way was harmless becomes one that leads out.
    team.shell("mkdir -p x/y; ln -s x/y/../../d deep");
    let text =
        team.shell("rm -r x; mkdir -p t; ln -s t x; mkdir t/y; ln -s . y2; rm -r t/y; ln -s ../.. t/y 2>&1; true");
    assert!(text.contains("`t/y` was removed") || text.contains("`deep` was removed"), "{text}");
}

#[test]
fn paths_that_are_not_allowed_are_refused() {
    let mut team = team(&[("a.txt", "one\n"), ("d/b.txt", "two\n")]);
    for (path, why) in [
        ("/etc/passwd", "is absolute"),
        ("/work/a.txt", "is absolute"),
        ("../a.txt", "has `..`"),
        ("d/../../a", "has `..`"),
        ("d/..", "has `..`"),
        ("a\0b", "control character"),
        ("a\nb", "control character"),
        (&"x".repeat(256), "a name of more than 255 bytes"),
        (&"x/".repeat(501), "longer than 1000 bytes"),
        ("a.txt/b", "`a.txt` is a file, not a folder"),
        ("d", "is a folder"),
        ("", "folder"),
    ] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("write_file", json!({"path": path, "text": "x"})),
            ("edit_file", json!({"path": path, "old": "x", "new": "y"})),
        ] {
            let text = team.bad(tool, arguments);
            assert!(text.contains(why) || path.is_empty() && text.contains("names no file"), "{tool} {path:?}: {text}");
        }
    }
    for path in ["/", "..", "d/../.."] {
        team.bad("list_files", json!({"path": path}));
        team.bad("search_files", json!({"path": path, "pattern": "x"}));
    }
    for path in ["/etc/x", "../x", "b/../../x"] {
        let patch = format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n");
        team.bad("apply_patch", json!({"patch": patch}));
    }
    assert_eq!(team.read("./d//b.txt"), "     1\ttwo\n");
    assert!(team.bad("read_file", json!({"path": "b.txt"})).contains("did you mean `d/b.txt`?"));
}

#[test]
fn files_are_read_written_searched_and_listed() {
    let long: String = (1..=1200).fold(String::new(), |text, i| text + &format!("line {i}\n"));
    let mut team = team(&[("long.txt", &long), ("src/a.py", "def f():\n    return 1\n")]);
    let text = team.read("long.txt");
    assert!(
        text.starts_with("     1\tline 1\n") && text.ends_with("   500\tline 500\n(lines 1 to 500 of 1200)\n"),
        "{text}"
    );
    let text = team.good("read_file", json!({"path": "long.txt", "from": 1199, "lines": 10}));
    assert_eq!(text, "  1199\tline 1199\n  1200\tline 1200\n(lines 1199 to 1200 of 1200)\n");
    assert!(team.bad("read_file", json!({"path": "long.txt", "from": 1201})).contains("none from line 1201"));
    team.shell("printf '\\xff\\xfe' > binary; : > empty");
    assert!(team.bad("read_file", json!({"path": "binary"})).contains("not UTF-8 text (2 bytes)"));
    assert_eq!(team.read("empty"), "(the file is empty)\n");
    assert_eq!(
        team.good("write_file", json!({"path": "new/x.txt", "text": "a\nb"})),
        "Created `new/x.txt`: 2 lines, 3 bytes."
    );
    assert_eq!(
        team.good("write_file", json!({"path": "new/x.txt", "text": "a\n"})),
        "Replaced `new/x.txt`: 1 lines, 2 bytes."
    );
    let text = team.good("list_files", json!({"depth": 1}));
    assert_eq!(
        text,
        "binary (2 bytes)\nempty (0 bytes)\nlong.txt (10893 bytes)\nnew/\nsrc/\n(deeper than 1: 2 more)\n"
    );
    assert_eq!(team.good("list_files", json!({"path": "src"})), "src/a.py (22 bytes)\n");
    assert!(team.bad("list_files", json!({"path": "none"})).contains("no folder"));
    assert_eq!(
        team.good("search_files", json!({"pattern": "^line 119[89]$|return"})),
        "long.txt:1198: line 1198\nlong.txt:1199: line 1199\nsrc/a.py:2:     return 1\n(files that are not UTF-8 text, not searched: 1)\n"
    );
    assert_eq!(team.good("search_files", json!({"pattern": "return", "path": "src"})), "src/a.py:2:     return 1\n");
    assert!(team.good("search_files", json!({"pattern": "line"})).contains("(the first 200 of 1200 lines;"));
    assert_eq!(team.good("search_files", json!({"pattern": "zebra", "path": "long.txt"})), "No line matches.\n");
    assert!(team.bad("search_files", json!({"pattern": "("})).contains("the pattern cannot be used"));
    team.bad("search_files", json!({"pattern": "x{1000}{1000}"}));
    let state = team.state.clone();
    team.read("long.txt");
    assert_eq!(team.state, state, "reading changes nothing");
}

#[test]
fn edits_are_exact() {
    let mut team = team(&[("a.py", "x = 1\ny = 1\nif x:\n    y = 2\n")]);
    assert_eq!(
        team.good("edit_file", json!({"path": "a.py", "old": "x = 1\n", "new": "x = 3\n"})),
        "Changed `a.py` at line 1."
    );
    let text = team.bad("edit_file", json!({"path": "a.py", "old": "y = ", "new": "z = "}));
    assert!(text.contains("2 times, at lines 2, 4"), "{text}");
    let text = team.bad("edit_file", json!({"path": "a.py", "old": "if x:\n  y = 2\n", "new": ""}));
    assert!(text.contains("only in spaces") && text.contains("3: if x:\n4:     y = 2"), "{text}");
    team.bad("edit_file", json!({"path": "a.py", "old": "", "new": "q"}));
    team.good("edit_file", json!({"path": "a.py", "old": "y = ", "new": "z = ", "all": true}));
    assert_eq!(team.shell("cat a.py"), "x = 3\nz = 1\nif x:\n    z = 2\n");
}

#[test]
fn a_patch_is_applied_whole_or_not_at_all() {
    let mut team = team(&[("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n"), ("b.txt", "only\n"), ("c.txt", "no newline")]);
    let good = "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@ head\n 1\n-2\n+two\n+and\n 3\n\
                @@ -7,2 +8,2 @@\n 7\n-8\n+eight\n--- a/b.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-only\n\
                --- /dev/null\n+++ b/new/d.txt\n@@ -0,0 +1,2 @@\n+first\n+last\n\\ No newline at end of file\n\
                --- c.txt\t2026\n+++ c.txt\t2026\n@@ -1 +1 @@\n-no newline\n\\ No newline at end of file\n+newline\n";
    let text = team.good("apply_patch", json!({"patch": good}));
    assert_eq!(text, "Patched: changed `a.txt`, deleted `b.txt`, created `new/d.txt`, changed `c.txt`.");
    assert_eq!(
        team.shell("cat a.txt | tr '\\n' ' '; ls; cat new/d.txt c.txt"),
        "1 two and 3 4 5 6 7 eight a.txt\nc.txt\nnew\nfirst\nlastnewline\n"
    );
    // Lines have moved since.
    team.good("write_file", json!({"path": "a.txt", "text": "0\n0\n1\n2\n3\n"}));
    team.good("apply_patch", json!({"patch": "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n"}));
    assert_eq!(team.shell("cat a.txt | tr '\\n' ' '"), "0 0 1 two 3 ");
    let ok = "--- c.txt\n+++ c.txt\n@@ -1 +1 @@\n-newline\n+changed\n";
    for (patch, why) in [
        (
            "--- a.txt\n+++ a.txt\n@@ -3,2 +3,2 @@\n 1\n-2\n+x\n",
            "hunk 1 of `a.txt` does not apply: at line 4 it expects `2\\n`, and there is `two\\n`",
        ),
        (
            "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n 0\n-0\n+x\n@@ -9,1 +9,1 @@\n-9\n+x\n",
            "hunk 2 of `a.txt` does not apply",
        ),
        ("--- none\n+++ none\n@@ -1 +1 @@\n-1\n+2\n", "there is no file `none`"),
        ("--- /dev/null\n+++ a.txt\n@@ -0,0 +1 @@\n+x\n", "creates `a.txt`, which is there already"),
        ("--- a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-0\n-0\n", "not all of its lines"),
        (
            "--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n 0\n-0\n+x\n",
            "hunk 1 of `a.txt` (line 3 of the patch): its header says 3 old and 3 new lines, but it has 2 and 2",
        ),
        ("--- a.txt\n+++ a.txt\n@@ -1,1 +1,1 @@\n-0\n+x\n+y\n", "more lines than its header says"),
        ("--- a.txt\n+++ b.txt\n@@ -1,1 +1,1 @@\n-0\n+x\n", "cannot be renamed"),
        ("rename from a\nrename to b\n", "line 1 of the patch"),
        ("diff --git a/e b/e\nnew file mode 100644\n", "no line changes"),
        ("@@ -1 +1 @@\n-0\n+x\n", "no `--- path`"),
        ("--- a.txt\n+++ a.txt\n@@ nonsense\n", "no header of a hunk"),
        ("--- a.txt\n+++ a.txt\n", "no hunk for `a.txt`"),
        ("hello", "the patch has no file"),
        ("--- a.txt\n+++ a.txt\n@@ -99,0 +100 @@\n+x\n", "would be put behind line 99"),
    ] {
        let text = team.bad("apply_patch", json!({"patch": patch}));
        assert!(text.contains(why), "{patch}: {text}");
        // What comes before it is not applied either, for which `bad` looks at the state.
        if patch.starts_with("--- ") {
            team.bad("apply_patch", json!({"patch": format!("{ok}{patch}")}));
        }
    }
    assert_eq!(team.shell("cat c.txt"), "newline\n");
    // A file twice in one patch, and one that it creates before.
    let twice = format!("{ok}--- c.txt\n+++ c.txt\n@@ -1 +1 @@\n-changed\n+again\n");
    team.good("apply_patch", json!({"patch": twice}));
    assert_eq!(team.shell("cat c.txt"), "again\n");
}

#[test]
fn tests_are_run_and_counted() {
    let test = "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n  def test_b(self): self.assertEqual(1, 2)\n\
                \n  @unittest.skip('no')\n  def test_c(self): pass\n";
    let mut team = team(&[]);
    let none = team.call("run_tests", json!({"command": "python3 -m unittest"}));
    assert!(none.error && none.text.starts_with("No tests were found."), "{}", none.text);
    team.good("write_file", json!({"path": "test_x.py", "text": test}));
    let first = team.call("run_tests", json!({"command": "python3 -m unittest"}));
    assert!(!first.error && first.text.starts_with("1 passed, 1 failed, 1 skipped.\n\n"), "{}", first.text);
    assert!(
        first.text.contains("AssertionError: 1 != 2") && first.text.ends_with("FAILED (failures=1, skipped=1)"),
        "{}",
        first.text
    );
    assert_eq!(team.call("run_tests", json!({"command": "python3 -m unittest"})), first, "no times in it");
    assert!(team.good("run_tests", json!({})).starts_with("1 passed, 1 failed, 1 skipped"));
    let other = team.call("run_tests", json!({"command": "echo all well; false"}));
    assert!(other.error && other.text == "The command ended with status 1.\n\nall well", "{}", other.text);
}

#[test]
fn a_damaged_store_is_told() {
    let mut team = team(&[("a.txt", "one\n")]);
    team.good("write_file", json!({"path": "b.txt", "text": "a text that is long enough to be found"}));
    let pack = team
        .packs()
        .into_iter()
        .find(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).contains("long enough"))
        .unwrap();
    let whole = fs::read(&pack).unwrap();
    let text = String::from_utf8_lossy(&whole).into_owned();
    let flip = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&pack, bytes).unwrap();
    };
    flip(text.find("long enough").unwrap());
    let error = team.at("read_file", &json!({"path": "b.txt"}), &team.state).unwrap_err();
    assert!(
        matches!(&error, ProviderError::Fatal { why } if why.contains("is damaged") && why.contains("pack")),
        "{error}"
    );
    let error = team.at("shell", &json!({"command": "ls"}), &team.state).unwrap_err();
    assert!(error.to_string().contains("is damaged"), "{error}");
    // Another version is whole.
    assert!(!team.at("read_file", &json!({"path": "a.txt"}), "").unwrap().error);
    let Team { workspace, folder, state } = team;
    drop(workspace);
    let open = || {
        Workspace::open(&folder.path().join("store"), start(&[("a.txt", "one\n")]), &Workspace::TOOLS, Limits::STANDARD)
    };
    flip(20);
    assert!(open().err().unwrap().contains("its header does not fit its name"));
    fs::remove_file(&pack).unwrap();
    // What a call that died has left.
    fs::write(folder.path().join("store/new-0"), "half").unwrap();
    let team = Team { workspace: open().unwrap(), state, folder };
    assert!(!team.folder.path().join("store/new-0").exists());
    let error = team.at("read_file", &json!({"path": "b.txt"}), &team.state).unwrap_err();
    assert!(matches!(&error, ProviderError::Fatal { why } if why.contains("has no object")), "{error}");
    for state in ["x", "00.11", &"a".repeat(64)] {
        team.at("list_files", &json!({}), state).unwrap_err();
    }
}

#[test]
fn a_store_has_one_owner_and_a_limit() {
    let mut team = limited(&[], Limits { store: 100_000, ..Limits::STANDARD });
    team.good("write_file", json!({"path": "a", "text": "x".repeat(60_000)}));
    let text = team.bad("write_file", json!({"path": "b", "text": "y".repeat(60_000)}));
    assert!(text.contains("the limit of 100000 bytes on disk"), "{text}");
    let text = team.bad("shell", json!({"command": "head -c 60000 /dev/urandom > b"}));
    assert!(text.contains("the limit of 100000 bytes on disk"), "{text}");
    assert_eq!(team.good("write_file", json!({"path": "a", "text": "z"})), "Replaced `a`: 1 lines, 1 bytes.");
    let again = Workspace::open(&team.folder.path().join("store"), start(&[]), &[], Limits::STANDARD);
    assert!(again.err().unwrap().contains("another process has it open"));
}

#[test]
fn a_start_is_checked() {
    let folder = TempDir::new().unwrap();
    let from = folder.path().join("from");
    fs::create_dir_all(from.join("d/empty")).unwrap();
    fs::write(from.join("d/a.sh"), "echo hi").unwrap();
    fs::set_permissions(from.join("d/a.sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let open =
        |name: &str, start: Start, limits| Workspace::open(&folder.path().join(name), start, &Workspace::TOOLS, limits);
    let workspace = open("1", Start::Folder(from.clone()), Limits::STANDARD).unwrap();
    let mut team = Team { workspace, state: String::new(), folder: TempDir::new().unwrap() };
    assert_eq!(team.shell("./d/a.sh; ls d"), "hi\na.sh\nempty\n");
    let refused = |name: &str, start: Start, limits| open(name, start, limits).err().unwrap();
    let few = sandbox(|limits| limits.files = 2);
    assert!(refused("2", Start::Folder(from.clone()), few).contains("more than 2 files and folders"));
    let small = sandbox(|limits| limits.disk = 5);
    assert!(refused("3", Start::Folder(from.clone()), small).contains("more than 5 bytes"));
    assert!(refused("3b", start(&[("a", "xxxxxx")]), small).contains("5 is the limit"));
    std::os::unix::fs::symlink("/etc/passwd", from.join("link")).unwrap();
    assert!(refused("4", Start::Folder(from.clone()), Limits::STANDARD).contains("symbolic link"));
    assert!(refused("5", start(&[("../a", "")]), Limits::STANDARD).contains("has `..`"));
    assert!(refused("6", start(&[("a", ""), ("./a", "")]), Limits::STANDARD).contains("twice"));
    assert!(refused("7", start(&[("a", ""), ("a/b", "")]), Limits::STANDARD).contains("is a file"));
    assert!(refused("8", start(&[("", "")]), Limits::STANDARD).contains("names no file"));
    assert!(refused("9", Start::Folder(from.join("none")), Limits::STANDARD).contains("No such file"));
}

#[test]
fn only_allowed_tools_are_offered() {
    let folder = TempDir::new().unwrap();
    let open = |tools: &[&str]| Workspace::open(folder.path(), start(&[]), tools, Limits::STANDARD);
    assert!(open(&["pythn"]).err().unwrap().contains("did you mean `python`?"));
    let workspace = open(&["list_files", "python"]).unwrap();
    let names: Vec<String> = workspace.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["python", "list_files"]);
    for tool in workspace.tools() {
        assert_eq!(tool.session.as_deref(), Some("workspace"));
        let reads = matches!(&*tool.name, "read_file" | "search_files" | "list_files");
        assert_eq!(tool.effect, if reads { EffectClass::Reads } else { EffectClass::Writes }, "{}", tool.name);
        assert_eq!(tool.schema()["additionalProperties"], json!(false));
    }
    let arguments = json!({"command": "ls"});
    let error = block_on(workspace.call("shell", arguments.as_object().unwrap(), "")).unwrap_err();
    assert!(error.to_string().contains("does not offer"), "{error}");
    workspace.check().unwrap();
}

#[test]
fn long_output_is_shown_in_part() {
    let mut team = limited(&[], Limits { shown: 20, ..Limits::STANDARD });
    assert_eq!(
        team.python("print('a' * 50 + 'ä' * 50)"),
        format!("{}\n[... 81 characters left out ...]\n{}\n", "a".repeat(10), "ä".repeat(9))
    );
}

#[test]
fn the_sandbox_keeps_programs_from_the_machine() {
    let mut team = team(&[]);
    let text = team.call("shell", json!({"command": "id -u; ls /root /home /etc /work/h-work; touch /usr/x; cat /proc/1/environ; kill -9 1; ls /proc/1/fd; true"})).text;
    for line in [
        "65534",
        "'/root': No such file",
        "'/home': No such file",
        "'/etc': No such file",
        "Read-only file system",
        "Permission denied",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // The interpreter has nothing of process 1, and a forged end of a cell is no more than an end.
    let code = "import os\nfor fd in range(3, 64):\n  try: os.write(fd, b'k')\n  except OSError: pass\nopen('x', 'w').close()\n1";
    let output = team.call("python", json!({"code": code}));
    assert!(!output.error, "{}", output.text);
    team.python("1 + 1");
}
