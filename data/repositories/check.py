"""Issues over small Python repositories: what a workflow may look at, and which patches are right.

A patch is the text of whole files, each headed by a line `### path`. Tests are functions named test_...; a patch is right if the
hidden tests of the issue pass and the visible tests still pass.
"""

import ast
import json
import math
import re

# Runs the tests of several copies of a repository, each in a process of its own with a second of
# processor time, and prints for each copy what failed.
RUNNER = '''
import importlib, json, os, signal, sys, traceback

def tests(folder):
    os.chdir(folder)
    sys.path.insert(0, os.getcwd())
    results = {}
    for name in sorted(os.listdir("tests")):
        if not name.endswith(".py"):
            continue
        module = name[:-3]
        try:
            loaded = importlib.import_module("tests." + module)
        except BaseException as why:
            results[module] = f"{type(why).__name__}: {why}"
            continue
        for test in [test for test in vars(loaded) if test.startswith("test_")]:
            try:
                getattr(loaded, test)()
                results[f"{module}.{test}"] = ""
            except BaseException as why:
                at = traceback.extract_tb(why.__traceback__)[-1]
                where = os.path.relpath(at.filename)
                results[f"{module}.{test}"] = f"{type(why).__name__}: {why} ({where}, in {at.name})"
    return results

out = []
for folder in sorted(os.listdir("copies")):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, 1)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        os.write(write, json.dumps(tests(os.path.join("copies", folder))).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    out.append(json.loads(text) if text else {"all": "no result in time"})
print(json.dumps(out))
'''


def copy_of(row, patch="", tests=None):
    """The files of the repository with a patch and with tests of one's own."""
    files = {**row["files"], **{path: text for path, text in files_of(patch).items() if not path.startswith("tests/")}}
    return {**files, **(tests or {})}


def outcomes(copies):
    """What failed in each copy: a dict of tests, with an empty text for those that passed."""
    files = {f"copies/{n:02d}/{path}": text for n, files in enumerate(copies) for path, text in files.items()}
    status, output = execute({**files, "main.py": RUNNER}, "main.py", seconds=8)
    try:
        return json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return [{"all": "the tests did not end"} for _ in copies]


def failures(result):
    return {test: why for test, why in result.items() if why}


def report(result):
    """What failed, a line each, for people."""
    failed = failures(result)
    lines = [f"{len(result) - len(failed)} of {len(result)} tests pass."] + [f"{test}: {why}" for test, why in failed.items()]
    return "\n".join(lines)


def python(text):
    """Code of an answer, without a fence and without a line that names its file."""
    files = files_of(text)
    return "\n".join(files.values()) if files else text.replace("```python", "").replace("```", "")


# What decides.

def check(row, answer):
    """Whether an answer does what the task asks: a patch, or (task `test`) a test."""
    if row.get("task") == "test":
        return tests_well(row, answer)
    after, = outcomes([copy_of(row, answer, row["hidden"])])
    failed = failures(after)
    return not failed, "; ".join(f"{test}: {why}" for test, why in failed.items()) or "all tests pass"


def tests_well(row, answer):
    """Whether a test fails on the repository, passes with the right patch, and fails with a patch that misses what was asked."""
    test = {"tests/test_new.py": python(answer)}
    before, right = outcomes([copy_of(row, "", test), copy_of(row, row["patch"], test)])
    new = [name for name in right if name.startswith("test_new")]
    ran = bool(new) and all("test_new." in name for name in new)
    passes = ran and not any(right[name] for name in new)
    fails = ran and any(before.get(name, "") for name in new)
    return passes and fails, f"fails before: {fails}; passes after: {passes}"


# What a workflow may look at.

def sources(row):
    return {path: text for path, text in row["files"].items() if not path.startswith("tests/")}


def paths_in(row, text):
    return [path for path in row["files"] if re.search(r"(?<![\w/.])" + re.escape(path), text)]


def read(row, paths):
    """The files whose paths a text names."""
    named = paths_in(row, paths)
    assert named, "no such file"
    return "\n".join(f"### {path}\n{row['files'][path]}" for path in named)


def words(text):
    return [word for word in re.findall(r"[a-z]+", text.lower()) if len(word) > 2]


def retrieve(row):
    """The three source files that share most words with the issue, by BM25."""
    texts = {path: words(path + " " + text) for path, text in sources(row).items()}
    mean = sum(map(len, texts.values())) / len(texts)

    def score(path):
        total = 0.0
        for word in sorted(set(words(row["question"]))):
            count = texts[path].count(word)
            having = sum(word in other for other in texts.values())
            rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            total += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * len(texts[path]) / mean))
        return total

    return "\n".join(sorted(texts, key=lambda path: (-score(path), path))[:3])


def combine(row, *lists):
    """The three files that most of the lists name, those of the first list first."""
    counts = {}
    for text in lists:
        for line in text.splitlines():
            for path in paths_in(row, line):
                counts[path] = counts.get(path, 0) + 1
    return "\n".join(sorted(counts, key=lambda path: -counts[path])[:3])


def everything(row, named):
    """All source files, whatever was named."""
    return read(row, "\n".join(sources(row)))


def outline(row, named):
    """The skeletons of the three files that a model named or that were retrieved."""
    return skeleton(row, combine(row, named, retrieve(row)))


def skeleton(row, paths):
    """Signatures and first sentences of the named files, without bodies."""
    out = []
    for path in paths_in(row, paths):
        out.append(f"### {path}")
        for node in ast.parse(row["files"][path]).body:
            out += signatures(node, "")
    return "\n".join(out)


def signatures(node, indent):
    if isinstance(node, ast.Assign):
        return [f"{indent}{ast.unparse(node.targets[0])} = ..."]
    if isinstance(node, ast.ClassDef):
        return [f"{indent}class {node.name}:"] + [line for inner in node.body for line in signatures(inner, indent + "    ")]
    if isinstance(node, ast.FunctionDef):
        about = (ast.get_docstring(node) or "").splitlines()[:1]
        return [f"{indent}def {node.name}({ast.unparse(node.args)}):"] + [f'{indent}    """{line}"""' for line in about]
    return []


def code(row, locations):
    """The code of the named elements (`path: name`), with ten lines around each."""
    out = []
    for line in locations.splitlines():
        for path in paths_in(row, line):
            text = row["files"][path]
            lines = text.splitlines()
            names = re.findall(r"\w+", line.split(path, 1)[1])
            spans = [(node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text)) if named(node) in names]
            first = max(0, min((span[0] for span in spans), default=1) - 11)
            last = max((span[1] for span in spans), default=len(lines)) + 10
            out.append(f"### {path}\n" + "\n".join(lines[first:last]))
    assert out, "no such place"
    return "\n".join(out)


def named(node):
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", None) if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None


# Tests.

def reproduction(row, test):
    """Whether a test fails on the repository as it is, as a test that shows the issue must."""
    result, = outcomes([copy_of(row, "", {"tests/test_new.py": python(test)})])
    failed = [name for name in failures(result) if name.startswith("test_new")]
    return bool(failed), report(result)


def run_tests(row, patch, test=""):
    """Whether the visible tests and a test of one's own pass with a patch."""
    own = {"tests/test_new.py": python(test)} if test.strip() else {}
    result, = outcomes([copy_of(row, patch, own)])
    return not failures(result), report(result)


def examine(row, test, *patches):
    """For every patch: how many visible tests it breaks, and whether the issue no longer shows. A test that does not show the issue does not count."""
    own = {"tests/test_new.py": python(test)}
    results = outcomes([copy_of(row, "", own)] + [copy_of(row, patch, own) for patch in patches])
    shows = any(name.startswith("test_new") for name in failures(results[0]))
    lines = []
    for n, result in enumerate(results[1:], 1):
        failed = failures(result)
        broken = sum(not name.startswith("test_new") for name in failed)
        solved = shows and not any(name.startswith("test_new") for name in failed)
        lines.append(f"patch {n}: {broken} broken, {'solved' if solved else 'not solved' if shows else 'not known'}")
    return "\n".join(lines)


def select(row, results, *patches):
    """The commonest of the patches that break fewest tests and solve the issue, or else of those that break fewest. Unreadable results select nothing."""
    marks = {int(n): (int(broken), solved == "solved") for n, broken, solved in re.findall(r"patch (\d+): (\d+) broken, (solved|not)", results)}
    kept = list(patches)
    if marks.keys() == set(range(1, len(patches) + 1)):
        least = min(broken for broken, _ in marks.values())
        whole = [n for n in marks if marks[n][0] == least]
        solved = [n for n in whole if marks[n][1]]
        kept = [patches[n - 1] for n in solved or whole]
    same = [normal(row, patch) for patch in kept]
    return max(kept, key=lambda patch: same.count(normal(row, patch)))


def normal(row, patch):
    """A patch as what it changes, so that patches that differ in spaces or comments only count as one."""
    files = files_of(patch)
    out = []
    for path in sorted(files):
        try:
            out.append(path + ast.unparse(ast.parse(files[path])))
        except SyntaxError:
            out.append(path + files[path])
    return "\n".join(out)


# What a meta agent chooses among.

def search(row, code):
    """One step further: the files that define what the issue names, or that most shares its words; then what the files read so far import."""
    seen = paths_in(row, code)
    texts = sources(row)
    if not seen:
        names = re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", row["question"])))
        found = [path for path, text in texts.items() if any(re.search(rf"^(def|class) {name}\b", text, re.M) for name in names)]
        found = found or retrieve(row).splitlines()[:1]
        return read(row, "\n".join(found))
    modules = [module for path in seen for module in re.findall(r"^from \.(\w+) import", row["files"][path], re.M)]
    further = [path for path in texts if path not in seen and path.split("/")[-1].removesuffix(".py") in modules]
    return code + ("\n" + read(row, "\n".join(further)) if further else "")


# Placebos: the same work, and no word on what failed.

def run_tests_silently(row, patch, test=""):
    passed, text = run_tests(row, patch, test)
    return passed, text.splitlines()[0]


def reproduction_silently(row, test):
    passed, text = reproduction(row, test)
    return passed, text.splitlines()[0]
