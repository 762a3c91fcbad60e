"""Tables for data frames."""

import sys

import pandas
import polars
import polity
import pyarrow
import pytest


def test_every_library_of_data_frames_takes_a_table(guess):
    run = polity.run(guess, out="a")
    acts = run.tables["acts"]
    assert (acts.rows, len(acts), acts.name) == (300, 300, "acts")
    # What Polars makes of a stream without a name is a column of records.
    frames = polars.DataFrame(acts), polars.from_arrow(acts).struct.unnest(), acts.to_polars()
    assert all(frame.shape == (300, 4) for frame in frames)
    table = pyarrow.table(acts)
    assert table.num_rows == 300 and table.equals(acts.to_pyarrow())
    assert pyarrow.schema(acts).names == [column.name for column in acts.columns]
    pandas_frame = acts.to_pandas()
    assert isinstance(pandas_frame, pandas.DataFrame)
    assert pandas_frame["value"].tolist() == frames[0]["value"].to_list() == table["value"].to_pylist()
    # A table can be taken more than once.
    assert polars.DataFrame(acts).equals(polars.DataFrame(acts))


def test_columns_say_what_they_mean(guess):
    tables = polity.run(guess, out="a").tables
    for name, table in tables.items():
        assert table.doc and all(column.doc and column.kind in {"u32", "u64", "f64", "bool", "text", "category"} for column in table.columns), name
    agent = next(column for column in tables["acts"].columns if column.name == "agent")
    assert agent == ("agent", "u32", "who acted")
    assert "who acted" in tables["acts"]._repr_html_() and "300 rows" in repr(tables["acts"])


def test_a_table_that_is_missing_is_named_with_the_nearest(guess):
    tables = polity.run(guess, out="a").tables
    with pytest.raises(KeyError, match="this run has no table `act`; did you mean `acts`"):
        tables["act"]
    assert "acts" in tables and "act" not in tables and len(tables) == len(list(tables))


def test_metrics_are_a_table_and_a_dictionary(guess):
    run = polity.run(guess, out="a")
    metrics = run.metrics
    last = dict(metrics.items())
    assert last["guess.mean"] == metrics["guess.mean"] == run.series("guess.mean")[-1][1]
    assert "guess.mean" in metrics and set(metrics) == set(metrics.keys()) == set(last)
    frame = metrics.to_polars()
    assert frame.filter(polars.col("name") == "guess.mean")["value"].to_list() == [value for _, value in run.series("guess.mean")]
    with pytest.raises(KeyError, match="did you mean `guess.mean`"):
        metrics["guess.maen"]
    with pytest.raises(polity.InputError, match="did you mean `guess.mean`"):
        run.series("gues.mean")


def test_a_table_without_rows_keeps_its_columns(guess):
    calls = polity.run(guess, out="a").calls
    frame = calls.to_polars()
    assert frame.height == 0 and "tokens_in" in frame.columns and frame.schema["round"] == polars.UInt32


def test_damage_is_an_error(guess):
    run = polity.run(guess, out="a")
    part = next((run.folder / "tables" / "acts").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(polity.FolderError, match="recorded digest"):
        polity.open("a").tables["acts"]


@pytest.mark.parametrize(("package", "method"), [("polars", "to_polars"), ("pandas", "to_pandas"), ("pyarrow", "to_pyarrow")])
def test_a_missing_library_is_named(guess, monkeypatch, package, method):
    acts = polity.run(guess, out="a").tables["acts"]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        getattr(acts, method)()


def test_a_table_outlives_its_run(guess):
    frame = polars.DataFrame(polity.run(guess, out="a").tables["acts"])
    import gc

    gc.collect()
    assert frame["value"].sum() > 0
