from pebble.cells import value
from pebble.groups import group, mean
from pebble.rows import read, split
from pebble.summary import summary


def test_value():
    assert [value("3"), value("2.5"), value("x")] == [3, 2.5, "x"], "numbers are numbers"


def test_zero():
    assert value("0") == 0, "a zero is a number"


def test_split():
    assert split("a,b,") == ["a", "b", ""], "a last field may be empty"


def test_read():
    assert read("n,m\n1,x") == [{"n": 1, "m": "x"}], "one row"


def test_group():
    assert list(group([{"k": 2}, {"k": 1}, {"k": 2}], "k")) == [2, 1], "groups come as they appear"


def test_mean():
    assert mean([{"n": 1}, {"n": 4}], "n") == 2.5, "the mean of 1 and 4"


def test_mean_with_zero():
    assert mean([{"n": 0}, {"n": 4}], "n") == 2, "a zero counts"


def test_summary():
    assert summary("k,n\na,1\nb,2\na,3", "k", "n") == {"a": 2, "b": 2}, "both have a mean of 2"
