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
