"""Groups of rows."""


def group(rows, name):
    """Rows by the value of a column, in the order of first appearance."""
    groups = {}
    for row in rows:
        groups.setdefault(row.get(name), []).append(row)
    return groups


def mean(rows, name):
    """The mean of a column over the rows that have a number there; None if there is none."""
    numbers = [row[name] for row in rows if isinstance(row.get(name), (int, float))]
    return sum(numbers) / len(numbers) if numbers else None
