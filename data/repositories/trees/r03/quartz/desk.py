"""The desk that books by text."""

from .agenda import Agenda
from .clock import clock, minutes


def handle(lines):
    """Answers to requests such as `book ada 09:30 20`."""
    agenda, answers = Agenda(), []
    for line in lines:
        _, name, at, length = line.split()
        done = agenda.book(name, minutes(at), int(length))
        free = agenda.next_free(int(length))
        answers.append(f"{name} booked" if done else "full" if free is None else f"next free {clock(free)}")
    return answers
