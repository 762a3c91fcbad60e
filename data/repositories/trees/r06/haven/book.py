"""Accounts and bookings."""


class Book:
    """Balances by account."""

    def __init__(self):
        self.balances = {}
        self.log = []

    def move(self, source, target, cents):
        """Moves an amount between two accounts."""
        if cents <= 0:
            raise ValueError("an amount must be positive")
        self.balances[source] = self.balances.get(source, 0) - cents
        self.balances[target] = self.balances.get(target, 0) + cents
        self.log.append((source, target, cents))

    def undo(self):
        """Takes the last booking back; nothing if there is none."""
        if self.log:
            source, target, cents = self.log.pop()
            self.balances[source] += cents
            self.balances[target] -= cents
