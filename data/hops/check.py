"""Checks answers to questions of the corpus."""


def check(row, answer):
    return answer.strip().lower() == row["answer"].lower()
