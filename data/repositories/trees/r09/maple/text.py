"""Words that do not count."""

STOP = {"a", "an", "the", "of"}
