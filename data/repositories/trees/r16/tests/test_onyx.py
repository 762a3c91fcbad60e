from onyx.graph import order
from onyx.plan import schedule
from onyx.times import finish


def test_order():
    assert order({"b": ["a"], "a": []}) == ["a", "b"], "a comes before b"


def test_order_by_name():
    assert order({"c": [], "a": [], "b": ["c"]}) == ["a", "c", "b"], "free tasks come by name"


def test_cycle():
    try:
        order({"a": ["b"], "b": ["a"]})
    except ValueError as why:
        assert "a, b" in str(why), "the error names the tasks"
        return
    assert False, "a circle is refused"


def test_schedule():
    assert schedule("a: b", {})[0] == "b ends on day 1", "b is planned although it has no line"


def test_finish():
    assert finish({"a": [], "b": ["a"]}, {"a": 2, "b": 3}) == {"a": 2, "b": 5}, "b ends on day 5"


def test_default_day():
    assert finish({"a": []}, {}) == {"a": 1}, "a task takes a day unless said otherwise"
