"""Progress of a run: a line in a terminal, a bar in a notebook."""

from __future__ import annotations

import html
import sys
import time
import warnings
from typing import Any


def _notebook() -> Any:
    """IPython's display functions, in a notebook."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    import IPython.display

    return IPython.display


class Progress:
    """Shows the round, the rate and the cost. ``wanted=None``: in terminals and notebooks only."""

    def __init__(self, wanted: bool | None) -> None:
        self._display: Any = _notebook() if wanted is not False else None
        self._terminal = wanted is not False and self._display is None and (wanted is True or sys.stderr.isatty())
        self.shows = self._terminal or self._display is not None
        self._handle: Any = None
        self._shown = 0.0
        self._began = time.monotonic()
        self._width = 0

    def __call__(self, rounds: int, planned: int, agents: int, calls: int, cost: float, waiting: str | None) -> None:
        now = time.monotonic()
        if not self.shows or planned == 0 or now - self._shown < (0.25 if self._display else 0.1):
            return
        self._shown = now
        words = f"round {rounds} of {planned}, {agents} agents, {now - self._began:.0f} s"
        if calls:
            # A price that is not known is not 0.
            words += f", {calls} answers" + (f", ${cost:.4f}" if cost else "")
        if waiting:
            words += f", {waiting}"
        share = rounds / planned
        if self._display is not None:
            self._show(share, words)
            return
        full = int(24 * share)
        line = f"[{'#' * full}{'.' * (24 - full)}] {words}"
        self._width = max(self._width, len(line))
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)

    def _show(self, share: float, words: str) -> None:
        page = self._display.HTML(
            f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> <span>{html.escape(words)}</span>'
        )
        if self._handle is None:
            self._handle = self._display.display(page, display_id=True)
        else:
            self._handle.update(page)

    def note(self, text: str) -> None:
        """Warns of trouble outside, such as a rate limit."""
        self._clear()
        # Whose line it is does not matter: the trouble is not in it.
        warnings.warn(text, RuntimeWarning, stacklevel=5)

    def _clear(self) -> None:
        if self._terminal and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Takes the line away."""
        self._clear()
        if self._handle is not None:
            self._handle.update(self._display.HTML(""))
