from birch.agenda import Agenda
from birch.clock import clock, minutes
from birch.desk import handle
from birch.slots import gaps, overlap


def test_minutes():
    assert minutes("09:30") == 570, "half past nine"
    assert minutes("9") == 540, "nine o'clock"


def test_clock():
    assert clock(570) == "09:30", "half past nine"


def test_overlap():
    assert overlap((1, 5), (4, 6)), "they share a minute"


def test_touching():
    assert not overlap((1, 5), (5, 6)), "one may begin when the other ends"


def test_gaps():
    assert gaps([(2, 3)], 0, 5) == [(0, 2), (3, 5)], "two gaps"


def test_book():
    agenda = Agenda()
    assert agenda.book("ada", 500, 30), "the day is free"
    assert not agenda.book("bo", 510, 5), "the time is taken"


def test_desk():
    assert handle(["book ada 09:30 20"]) == ["ada booked"], "the desk books"
