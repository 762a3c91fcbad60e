"""A program and its tests, each in a process of its own.

The tests ask for what they name and do not define: a function of the program becomes one that asks the program's process for its result. Nothing of
the tests is in the program's process, which answers with plain data and no more; what they compare, they compare here. Whether they passed
goes to process 1 over a pipe that no other process has.
"""
import builtins

TESTS = "<tests>"
TOLD = 10_000  # Letters of a trace that cross.
SHAPES = ((("value",), 2), (("function",), 1), (("missing",), 1), (("raised",), 5))  # Of answers: their first part, and how many.
# The exceptions that reach the tests as themselves. Those that end a loop would end one of the tests.
ERRORS = {name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
          and name not in ("StopIteration", "StopAsyncIteration", "ExceptionGroup")}


def own(frame):
    """Whether a frame is of this text, and not of a program."""
    return frame.f_code.co_filename == "<string>"


def main(path, names):
    """Makes a main module for what is run as one; its scope."""
    import types

    module = types.ModuleType("__main__")
    module.__file__, module.__builtins__ = path, names
    sys.modules["__main__"], sys.argv = module, [path]
    return module.__dict__


# ------------------------------------------------------------------ in the program's process

def raised(error, why):
    """An exception as it is told: the built-in type, plain arguments, where it came from and which wall caused it."""
    import traceback

    kind = next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    trace = error.__traceback__
    while trace and own(trace.tb_frame):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace))[-TOLD:]
    try:
        arguments = error.args
        encode(arguments)
    except NotPlain:
        arguments = (str(error),)
    return "raised", kind, arguments, text, why


def answer(scope, cause, what, name, arguments, named):
    if what == "name":
        if name not in scope:
            return ("missing",)
        return ("function",) if callable(scope[name]) else ("value", scope[name])
    try:
        return "value", scope[name](*arguments, **named)
    except Exception as error:
        return raised(error, cause(error) or "")


def serve(scope, asks, answers, mark, cause):
    """Answers what the tests ask, until they have ended. `mark` is that of their first question, whether the program is there."""
    me, name, told = os.getpid(), "", ("value", None)
    while True:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # The program has closed it.
        try:
            try:
                send(answers, mark, told)
            except NotPlain as error:
                send(answers, mark, raised(TypeError("what %s gives cannot be compared: %s" % (name, error)), ""))
            mark, question = receive(asks)
        except (EOFError, BrokenPipeError):
            while True:
                signal.pause()  # The tests have ended, perhaps before they heard the last answer. Process 1 sees that, and ends this one.
        name, told = question[1], answer(scope, cause, *question)
        if os.getpid() != me:
            os._exit(0)  # A copy of the program's process, that has come back in its place.


# ------------------------------------------------------------------ in the tests' process

class Program:
    """The program, as far as its tests see it."""

    def __init__(self, asks, answers, end):
        self.asks, self.answers, self.end = asks, answers, end
        self.turn = _thread.allocate_lock()  # Tests may have threads.
        self.last = None, "", ""  # The last exception that came, its trace, and the wall that caused it.

    def ask(self, wanted, *question):
        """The answer to a question, which is of a kind that is wanted."""
        with self.turn:
            return self.hear(wanted, self.say(*question))

    def say(self, what, name="", arguments=(), named={}):
        mark = os.urandom(8)
        try:
            send(self.asks, mark, (what, name, arguments, named))
        except NotPlain as error:
            raise TypeError("%s is asked for with what cannot be sent: %s" % (name, error)) from None
        except BrokenPipeError:
            self.end(gone=True)
        return mark

    def hear(self, wanted, mark):
        try:
            came, told = receive(self.answers)
        except EOFError:
            self.end(gone=True)
        except NotPlain as error:
            self.end(errors="The program's process broke the rules: %s\n" % error)
        if came != mark:
            self.end(errors="The program's process answered out of turn.\n")
        if type(told) is not tuple or (told[:1], len(told)) not in SHAPES or told[0] not in wanted + ("raised",):
            self.end(errors="The program's process broke the rules: an answer that fits no question\n")
        if told[0] == "raised":
            raise self.error(*told[1:])
        return told

    def error(self, kind, arguments, text, why):
        if not (type(kind) is type(text) is type(why) is str and type(arguments) is tuple):
            self.end(errors="The program's process broke the rules: an exception that is none\n")
        kind = ERRORS.get(kind, RuntimeError)
        try:
            error = kind(*arguments)
        except Exception:
            error = RuntimeError(*arguments)
        self.last = error, text, why
        return error

    def function(self, name):
        def call(*arguments, **named):
            return self.ask(("value",), "call", name, arguments, named)[1]

        call.__name__ = call.__qualname__ = name
        return call


class Names(dict):
    """Built-in names, and behind them those of the program."""

    def __init__(self, program):
        super().__init__(vars(builtins))
        self.program = program

    def __missing__(self, name):
        if name.startswith("__"):
            raise KeyError(name)
        told = self.program.ask(("value", "function", "missing"), "name", name)
        if told[0] == "missing":
            raise KeyError(name)
        if told[0] == "value":
            return told[1]
        self[name] = self.program.function(name)
        return self[name]


def test(tests, asks, answers, verdict):
    """Makes this process the tests', and ends it."""
    import io

    printed, complained = sys.stdout, sys.stderr = io.StringIO(), io.StringIO()

    def end(passed=False, gone=False, cause="", errors=""):
        parts = [part[-LIMITS["output"] - 1:] for part in (printed.getvalue(), complained.getvalue() + errors)]
        said = {"passed": passed, "gone": gone, "cause": cause, "output": parts[0], "errors": parts[1]}
        write(verdict, json.dumps(said).encode() + b"\n")
        os._exit(0)

    program = Program(asks, answers, end)
    loading = program.say("load", arguments=(os.getpid(),))
    os.chdir("/")
    confine(None, LIMITS["seconds"])
    try:
        code = compile(tests, TESTS, "exec")
        program.hear(("value",), loading)
        exec(code, main(TESTS, Names(program)))
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            end(passed=True)  # As unittest's own runner ends, for instance.
        lines, why = failure(error, tests, *program.last)
        end(cause=why, errors=lines)
    end(passed=True)


def failure(error, tests, came, text, why):
    """What is told of an exception that ended the tests, and which wall caused it."""
    import linecache, traceback

    linecache.cache[TESTS] = (len(tests), None, tests.decode("utf-8", "replace").splitlines(True), TESTS)
    told = traceback.TracebackException.from_exception(error)
    at = told
    while at is not None:
        at.stack[:] = [frame for frame in at.stack if frame.filename != "<string>"]
        at = at.__cause__ or at.__context__
    lines = "".join(told.format())
    if error is not came:
        return lines, ""
    return text + "\nIt came from the program, which was asked by\n\n" + lines, why
