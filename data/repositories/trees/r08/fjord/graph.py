"""Tasks that wait for others."""


def order(needs):
    """Tasks in an order that respects what they need."""
    done, left = [], {task: set(before) for task, before in needs.items()}
    while left:
        free = [task for task, before in left.items() if before <= set(done)]
        if not free:
            raise ValueError("tasks wait for each other: " + ", ".join(sorted(left)))
        done.extend(free)
        for task in free:
            del left[task]
    return done
