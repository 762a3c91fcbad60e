"""The exceptions of Polity. Their messages are those of the command line."""

from __future__ import annotations

import os
import traceback


class Error(Exception):
    """Why something could not be done. The message says what happened, where, and what to do."""

    #: The exit code of the command ``polity`` for the same error.
    exit_code = 1

    def __init__(self, message: str, path: str | None = None) -> None:
        super().__init__(message)
        #: The path of the error within the scenario, such as ``cohorts[0].policy.mean``, if it is there.
        self.path = path


class InputError(Error, ValueError):
    """A scenario, a parameter or a file that it names is wrong."""

    exit_code = 2


class FolderError(Error):
    """A run's folder is damaged, in use, or not a run's."""

    exit_code = 3


class DiskError(Error):
    """The disk is full or fails. The run can be resumed."""

    exit_code = 4


class ReplayError(Error):
    """A run differs from its record."""

    exit_code = 5


class BudgetError(Error):
    """The budget of a comparison is used up. (A run whose budget is used up is no error: its status is ``budget``.)"""

    exit_code = 7


class ModelError(Error):
    """No model can answer. The run can be resumed."""

    exit_code = 8


class RunError(Error):
    """The run stopped at a defect: of a policy, of a world, of a model's function, or of Polity."""

    exit_code = 1


_OWN = os.path.dirname(os.path.abspath(__file__))


def described(error: BaseException) -> str:
    """Describes an exception in a sentence, with the last line of the user's code that it passed."""
    words = traceback.format_exception_only(type(error), error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if os.path.dirname(os.path.abspath(frame.filename)) != _OWN]
    if not users:
        return words
    return f"{words} ({users[-1].filename}, line {users[-1].lineno}, in {users[-1].name})"
