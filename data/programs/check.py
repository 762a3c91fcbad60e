"""Checks programs of several files. Tests are lines such as `main.py 10 3 -> 4 3 3`."""

import json
import re

HARNESS = """
import contextlib, io, json, os, runpy, sys, traceback
cases, folders = json.load(open("cases.json"))
usual = set(sys.modules)
for folder in folders:
    os.chdir(folder)
    sys.path.insert(0, os.getcwd())
    said = []
    for at, argv in enumerate(cases):
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                if at == 0:
                    sys.argv = ["main.py", *argv]
                    runpy.run_path("main.py", run_name="__main__")
                else:
                    import main
                    main.main(argv)
            said.append(" / ".join(out.getvalue().strip().split("\\n")))
        except BaseException as error:
            place = os.path.basename(traceback.extract_tb(error.__traceback__)[-1].filename)
            said.append(f"{type(error).__name__} in {place}: {error}")
    print(json.dumps(said))
    os.chdir("..")
    del sys.path[0]
    for name in set(sys.modules) - usual:
        if getattr(sys.modules[name], "__file__", None) and folder in sys.modules[name].__file__:
            del sys.modules[name]
"""


def cases_of(text):
    """The (arguments, expected) of lines `main.py ARGUMENTS -> EXPECTED`; several printed lines are joined by ` / `."""
    found = []
    for line in text.splitlines():
        call = re.match(r"main\.py ?(.*?) -> (.*)$", line.strip())
        if call:
            found.append((call.group(1).split(), call.group(2).strip()))
    return found


def printed(programs, cases):
    """What each program prints: when it is started with the arguments of the first case, and by main.main for the others."""
    folders = [f"program{place}" for place in range(len(programs))]
    files = {f"{folder}/{path}": text for folder, program in zip(folders, programs) for path, text in program.items()}
    files |= {f"{folder}/empty": "" for folder in folders}
    files["cases.json"] = json.dumps([[argv for argv, _ in cases], folders])
    files["harness.py"] = HARNESS
    status, output = execute(files, "harness.py", seconds=9)
    try:
        return [json.loads(line) for line in output.strip().splitlines()[-len(programs) :]]
    except ValueError:
        last = (output.strip().splitlines() or ["no output"])[-1]
        return [[last] * len(cases)] * len(programs)


def report(files, cases):
    """Failed cases as lines, and the share that passes."""
    said = printed([files], cases)[0]
    failed = [
        f"{' '.join(['main.py', *argv])} -> {expected} FAILED, it printed: {got[:80]}"
        for (argv, expected), got in zip(cases, said)
        if got != expected
    ]
    return failed, 1 - len(failed) / max(1, len(cases))


def sizes(files):
    """Lines of code: of all files, and of the largest."""
    lines = [sum(1 for line in text.splitlines() if line.strip()) for text in files.values()]
    return sum(lines), max(lines, default=0)


def check(row, program):
    """The hidden acceptance tests."""
    files = files_of(program)
    cases = cases_of(row["acceptance"])
    failed, score = report(files, cases)
    size, largest = sizes(files)
    return {
        "passed": not failed,
        "score": score,
        "text": "" if not failed else f"{len(failed)} of {len(cases)} hidden tests fail",
        "measures": {"size": size, "value": largest},
    }


def run_tests(row, program, tests):
    """The tests of a QA engineer; they say which failed."""
    cases = cases_of(tests)
    if not cases:
        return False, "there is no test"
    failed, _ = report(files_of(program), cases)
    return not failed, "\n".join(failed) or "all tests pass"


def form(row, design):
    """Whether every interface of a design has the form that the house wants."""
    lines = [line for line in design.splitlines() if line.strip()]
    short = [line for line in lines if not re.match(r"\w+\.\w+\([\w, ]*\) -> .+", line)]
    return not short, "\n".join(f"{line}: say what it returns" for line in short) or "every interface is whole"


def children(row, skeleton):
    """The components that a skeleton imports and does not hold, a file a line."""
    names = re.findall(r"^import (\w+)$", skeleton, flags=re.M)
    return "\n".join(f"{name}.py" for name in names if name != "sys")


def at_fault(row, tested):
    """The files in which failing tests broke off, one a line."""
    return "\n".join(sorted(set(re.findall(r"it printed: \w+ in (\w+\.py): ", tested))))


def excerpt(row, program, path):
    """A file and the files that import it."""
    files = files_of(program)
    near = [name for name, text in files.items() if name == path or re.search(rf"^import {path[:-3]}$", text, flags=re.M)]
    return "\n".join(f"### {name}\n{files[name]}" for name in near)


def merge(row, program, changed):
    """A program with some of its files changed."""
    files = {**files_of(program), **files_of(changed)}
    return "\n".join(f"### {path}\n{text}" for path, text in files.items())


def best(row, programs):
    """The program with the most hidden tests passed, of several, each headed by `### Team ...`."""
    teams = [text for text in re.split(r"^### Team .*$", programs, flags=re.M) if text.strip()]
    cases = cases_of(row["acceptance"])
    passed = [sum(got == expected for got, (_, expected) in zip(said, cases)) for said in printed([files_of(text) for text in teams], cases)]
    return teams[passed.index(max(passed))]


def caught(row, tests):
    """How many of the planted wrong programs the tests notice; tests that the right program fails notice nothing."""
    cases = cases_of(tests)
    expected = [result for _, result in cases]
    right, *wrong = printed([files_of(program) for program in [row["answer"], *row["wrong"]]], cases)
    if not cases or right != expected:
        return {"passed": False, "score": 0, "text": "the right program does not pass these tests", "measures": {"recall": 0}}
    noticed = sum(said != expected for said in wrong)
    share = noticed / max(1, len(wrong))
    return {"passed": noticed == len(wrong), "score": share, "text": f"{noticed} of {len(wrong)} noticed", "measures": {"recall": share}}
