"""Tables of runs, for every library of data frames."""

from __future__ import annotations

import difflib
import html
import json
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from . import _polity


class Column(NamedTuple):
    """A column of a table."""

    #: Its name.
    name: str
    #: ``u32``, ``u64``, ``f64``, ``bool``, ``text`` or ``category``.
    kind: str
    #: What it means, with its unit.
    doc: str


def _need(package: str, method: str) -> Any:
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(f"{method} needs the package {package}, which is not installed: pip install {package}") from error


class Table:
    """A table in memory, as Arrow.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and every other reader of Arrow's PyCapsule interface take it without a copy;
    :meth:`to_polars`, :meth:`to_pandas` and :meth:`to_pyarrow` do the same in one word.
    """

    def __init__(self, core: _polity.Table) -> None:
        self._core = core

    @classmethod
    def _of_rows(cls, name: str, doc: str, columns: list[tuple[str, str, str]], rows: list[dict[str, Any]]) -> "Table":
        return cls(_polity.Table.of_rows(name, doc, columns, json.dumps(rows)))

    @property
    def name(self) -> str:
        """Its name."""
        return self._core.name

    @property
    def doc(self) -> str:
        """What a row is."""
        return self._core.doc

    @property
    def columns(self) -> list[Column]:
        """Its columns, with their meaning."""
        return [Column(*column) for column in self._core.columns]

    @property
    def rows(self) -> int:
        """The number of its rows."""
        return len(self._core)

    def __len__(self) -> int:
        return self.rows

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> Any:
        """A Polars data frame."""
        return _need("polars", "to_polars()").DataFrame(self)

    def to_pyarrow(self) -> Any:
        """A PyArrow table."""
        return _need("pyarrow", "to_pyarrow()").table(self)

    def to_pandas(self) -> Any:
        """A pandas data frame. It needs PyArrow, too."""
        _need("pandas", "to_pandas()")
        return _need("pyarrow", "to_pandas()").table(self).to_pandas()

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"<polity.Table {self.name}: {self.rows} rows; {names}>"

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><td><code>{html.escape(c.name)}</code></td><td>{html.escape(c.kind)}</td><td>{html.escape(c.doc)}</td></tr>"
            for c in self.columns
        )
        return (
            f"<p><b>{html.escape(self.name)}</b>: {self.rows} rows. {html.escape(self.doc)}</p>"
            f"<table><tr><th>column</th><th>kind</th><th>meaning</th></tr>{body}</table>"
        )


class Metrics(Table):
    """The table of metrics, one row for each round and metric, and the last value of each metric by its name."""

    def __init__(self, read: Callable[[], _polity.Table], last: dict[str, float], of: str) -> None:
        self._read, self._last, self._of = read, last, of
        self._made: _polity.Table | None = None

    @property
    def _core(self) -> _polity.Table:  # type: ignore[override]
        if self._made is None:
            self._made = self._read()
        return self._made

    def __getitem__(self, name: str) -> float:
        if name not in self._last:
            raise KeyError(missing(self._of, "metric", name, self._last))
        return self._last[name]

    def __contains__(self, name: object) -> bool:
        return name in self._last

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def keys(self) -> list[str]:
        """The names of the metrics."""
        return list(self._last)

    def items(self) -> list[tuple[str, float]]:
        """The metrics with their last values."""
        return list(self._last.items())

    def __repr__(self) -> str:
        return "<polity.Metrics " + ", ".join(f"{name}={value:.6g}" for name, value in self._last.items()) + ">"


def missing(whose: str, what: str, name: object, known: Any) -> str:
    """The message for a name that is not there."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    meant = f"; did you mean `{near[0]}`?" if near else ""
    return f"{whose} has no {what} `{name}`{meant} (it has: {', '.join(known) or 'none'})"


class Tables(Mapping[str, Table]):
    """The tables of a run by name. A table is read when it is taken, and is then kept."""

    def __init__(self, names: list[str], read: Callable[[str], _polity.Table], of: str) -> None:
        self._names, self._read, self._of = names, read, of
        self._kept: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._kept:
            if name not in self._names:
                raise KeyError(missing(self._of, "table", name, self._names))
            self._kept[name] = Table(self._read(name))
        return self._kept[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<polity.Tables {', '.join(self._names)}>"
