import json, os, resource, shutil, subprocess, sys, traceback

_folders = 0
# Elapsed seconds of a program, whatever it may compute: below the limit of the sandbox.
_LONGEST = 9


def execute(files, main, arguments=(), seconds=5):
    """Writes `files` ({path: text}) to a fresh folder and runs `python main` in it, for at most so many seconds of the processor.
    Returns (status, output)."""
    global _folders
    _folders += 1
    folder, most = f"/tmp/program-{_folders}", max(1, int(seconds))
    try:
        for path, text in files.items():
            target = os.path.normpath(os.path.join(folder, path))
            if not target.startswith(folder + os.sep):
                return 1, f"the path {path} leads out of the folder"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
        command = [sys.executable, main, *(str(argument) for argument in arguments)]
        try:
            done = subprocess.run(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                timeout=_LONGEST, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
            )
            if done.returncode < 0 and -done.returncode in (9, 24):
                return 124, f"it did not end within {seconds} s"
            return done.returncode, done.stdout.decode("utf-8", "replace")[-20000:]
        except subprocess.TimeoutExpired:
            return 124, "it did not end in time"
    except (OSError, ValueError) as error:
        return 1, str(error)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def files_of(text):
    """Reads a text of several files, each headed by a line `### path`, as {path: text}. Fences around a file are taken off."""
    files, path, lines, fenced = {}, None, [], False
    for line in [*text.split("\n"), None]:
        heads = line is not None and line.startswith("### ") and not fenced
        if line is None or heads:
            if path is not None or any(lines):
                files[path or "main.py"] = "\n".join(lines).strip("\n") + "\n"
            if heads:
                path, lines = line[4:].strip().strip("`"), []
        elif line.startswith("```"):
            fenced = not fenced
        else:
            lines.append(line)
    return files


def _decoded(cell):
    if isinstance(cell, str) and cell[:1] in ("[", "{"):
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    return cell


def _checked(value):
    checked = {"passed": True, "text": "", "score": None, "measures": {}}
    if value is None or isinstance(value, bool):
        checked["passed"] = value is not False
    elif isinstance(value, (int, float)):
        checked.update(passed=value >= 1, score=float(value))
    elif isinstance(value, str):
        checked["text"] = value
    elif isinstance(value, tuple):
        checked.update(passed=bool(value[0]), text=str(value[1]))
    else:
        checked.update(value)
        if "passed" not in value and checked["score"] is not None:
            checked["passed"] = checked["score"] >= 1
    if checked["score"] is None:
        checked["score"] = float(bool(checked["passed"]))
    return checked


def _main(source, function, row, texts):
    known = {"execute": execute, "files_of": files_of, "__name__": "checker"}
    try:
        exec(compile(source, "checker", "exec"), known)
    except Exception as error:
        return {"fault": f"the checker file cannot be used: {type(error).__name__}: {error}"}
    if not callable(known.get(function)):
        names = sorted(name for name, value in known.items() if callable(value) and not name.startswith("_"))
        return {"fault": f"the checker has no function `{function}`; it has {', '.join(names)}"}
    try:
        return _checked(known[function]({name: _decoded(cell) for name, cell in row.items()}, *texts))
    except AssertionError as error:
        return {"passed": False, "text": str(error) or "an assertion failed", "score": 0.0, "measures": {}}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} (`{where.name}`, line {where.lineno})"
        return {"passed": False, "text": text, "score": 0.0, "measures": {}}


