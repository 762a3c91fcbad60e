from kelp.index import Index
from kelp.query import find
from kelp.shelf import Shelf
from kelp.text import words


def test_words():
    assert words("The Art of War") == ["art", "war"], "small words do not count"


def test_inner_sign():
    assert words("Don't Stop") == ["don't", "stop"], "a sign within a word stays"


def test_find():
    shelf = Shelf(["Art of War", "War"])
    assert shelf.search("war") == ["Art of War", "War"], "both have war"
    assert shelf.search("art war") == ["Art of War"], "one has both words"


def test_empty_query():
    assert Shelf(["War"]).search("the") == [], "a query without words finds nothing"


def test_lend():
    shelf = Shelf(["War"])
    shelf.lend("War")
    assert shelf.search("war") == [], "a lent book is not found"


def test_numbers():
    index = Index()
    assert [index.add("A b"), index.add("C")] == [0, 1], "numbers rise"
