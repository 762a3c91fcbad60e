"""Appointments of one day."""

from .slots import gaps, overlap


class Agenda:
    """Appointments with names."""

    def __init__(self, start=480, end=1080):
        self.start, self.end = start, end
        self.taken = {}

    def book(self, name, begin, length):
        """Books an appointment; False if the time is taken or outside of the day."""
        wanted = (begin, begin + length)
        inside = self.start <= begin and begin + length <= self.end
        if not inside or any(overlap(wanted, other) for other in self.taken.values()):
            return False
        self.taken[name] = wanted
        return True

    def next_free(self, length):
        """The first time that is long enough; None if there is none."""
        return next((begin for begin, stop in gaps(self.taken.values(), self.start, self.end) if stop - begin >= length), None)

    def cancel(self, name):
        """Cancels an appointment; False if there is none of that name."""
        return self.taken.pop(name, None) is not None
