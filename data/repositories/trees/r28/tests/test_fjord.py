from fjord.book import Book
from fjord.money import to_cents, to_text
from fjord.reader import read


def test_cents():
    assert to_cents("12.50") == 1250, "12.50 are 1250 cents"
    assert to_cents("3") == 300, "3 are 300 cents"


def test_text():
    assert to_text(1250) == "12.50", "1250 cents are 12.50"
    assert to_text(7) == "0.07", "7 cents are 0.07"


def test_negative_cents():
    assert to_cents("-1.25") == -125, "-1.25 are -125 cents"


def test_move():
    book = Book()
    book.move("a", "b", 5)
    assert book.balances == {"a": -5, "b": 5}, "a booking has two sides"


def test_nothing_moves():
    try:
        Book().move("a", "b", 0)
    except ValueError:
        return
    assert False, "an amount of 0 is refused"


def test_read():
    assert read("a,b,1.00").balances["b"] == 100, "b has 100 cents"
