from fjord.graph import order
from fjord.plan import schedule
from fjord.textplan import parse
from fjord.times import finish


def test_order():
    assert order({"b": ["a"], "a": []}) == ["a", "b"], "a comes before b"


def test_order_by_name():
    assert order({"a": ["d"], "c": [], "d": []}) == ["c", "d", "a"], "a waits for its turn"


def test_cycle():
    try:
        order({"a": ["b"], "b": ["a"]})
    except ValueError as why:
        assert "a, b" in str(why), "the error names the tasks"
        return
    assert False, "a circle is refused"


def test_parse():
    assert parse("a: b\nb:") == {"a": ["b"], "b": []}, "a needs b"


def test_finish():
    assert finish({"a": [], "b": ["a"]}, {"a": 2, "b": 3}) == {"a": 2, "b": 5}, "b ends on day 5"


def test_default_day():
    assert finish({"a": []}, {}) == {"a": 1}, "a task takes a day unless said otherwise"
