"""Tasks that wait for others."""


def order(needs):
    """Tasks in an order that respects what they need; of several possible ones the first by name."""
    done, left = [], {task: set(before) for task, before in needs.items()}
    while left:
        free = sorted(task for task, before in left.items() if before <= set(done))
        if not free:
            raise ValueError("tasks wait for each other: " + ", ".join(sorted(left)))
        done.append(free[0])
        del left[free[0]]
    return done
