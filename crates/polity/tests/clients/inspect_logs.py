"""Makes logs with Inspect AI itself, for the test `import`: a scripted model, two tasks, both formats of logs.

Usage: inspect_logs.py FOLDER
"""

import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, get_model, modelapi
from inspect_ai.scorer import choice, match
from inspect_ai.solver import generate, multiple_choice


class Scripted(ModelAPI):
    """Gives the listed replies in order; an exception in the list is raised."""

    def __init__(self, model_name, base_url=None, api_key=None, config=None, replies=(), **_):
        super().__init__(model_name)
        self.replies = iter(replies)

    async def generate(self, input, tools, tool_choice, config):
        reply = next(self.replies)
        if isinstance(reply, Exception):
            raise reply
        output = ModelOutput.from_content(self.model_name, reply)
        output.usage = ModelUsage(input_tokens=11, output_tokens=5, total_tokens=16)
        return output

    # Inspect's own count fetches a vocabulary.
    async def count_tokens(self, *_, **__):
        return 1

    async def count_text_tokens(self, *_, **__):
        return 1


@modelapi(name="scripted")
def scripted():
    return Scripted


def run(folder, form, task, model, replies, **settings):
    model = get_model(f"scripted/{model}", replies=replies, memoize=False)
    settings = {"max_samples": 1, "fail_on_error": False, "display": "none", **settings}
    return eval(task, model=model, log_dir=str(folder), log_format=form, **settings)[0]


def colours():
    """Four questions with options; one is long enough for Inspect to keep it apart from the sample."""
    long = "Which colour has a clear sky at noon? " + "Think of summer. " * 40
    samples = [
        Sample(id="sky", input=long, choices=["red", "blue", "green"], target="B"),
        Sample(id="grass", input="Which colour has grass?", choices=["red", "blue", "green"], target="C"),
        Sample(id="rose", input="Which colour has the rose of\tthe song?", choices=["red", "blue"], target="A"),
        Sample(id="snow", input="Which colour has snow?", choices=["grey", "white"], target="B"),
    ]
    return Task(dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice(), name="colours")


def sums():
    """Sums without ids of their own. Inspect numbers them from 1."""
    samples = [Sample(input=f"What is {n} + {n}?", target=str(2 * n)) for n in range(5)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match(numeric=True), name="sums")


def main(folder):
    letters = ["ANSWER: B", "ANSWER: A", "I cannot say", "ANSWER: B"]
    again = ["ANSWER: B", "ANSWER: C", "ANSWER: A", "ANSWER: A"]
    for form in ("eval", "json"):
        log = run(folder / form, form, colours(), "bright", letters + again, epochs=2)
        assert log.status == "success", log.error
        broken = RuntimeError("the line is dead")
        numbers = ["It is 0", "about 3", "The answer is 4.", broken, "8"]
        log = run(folder / form, form, sums(), "bright", numbers)
        assert log.status == "success", log.error


main(Path(sys.argv[1]))
