"""Groups of rows."""


def group(rows, name):
    """Rows by the value of a column, in the order of first appearance."""
    groups = {}
    for row in rows:
        groups.setdefault(row.get(name), []).append(row)
    return groups


def mean(rows, name):
    """The mean of a column over rows."""
    return sum(row[name] for row in rows) / len(rows)
