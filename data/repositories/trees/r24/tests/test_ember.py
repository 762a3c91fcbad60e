from ember.convert import convert
from ember.parse import parse_quantity
from ember.report import total


def test_small_units():
    assert convert(5, "cm", "mm") == 50, "5 cm are 50 mm"


def test_thousands():
    assert parse_quantity("1,500 m") == (1500.0, "m"), "a comma before three digits separates thousands"


def test_alias():
    assert parse_quantity("2 metres") == (2.0, "m"), "metres is an alias of m"


def test_alias_in_conversion():
    assert convert(3, "metre", "cm") == 300, "metre is an alias of m"


def test_total():
    assert total(["1 m", "50 cm"], "cm") == 150, "1 m and 50 cm are 150 cm"


def test_total_of_nothing():
    assert total([], "m") == 0, "the total of no lines is 0"
