"""Makes logs with lm-evaluation-harness itself, for the test `import`: a scripted model, three tasks, offline.

Usage: harness_logs.py FOLDER
"""

import json
import os
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(Path(sys.argv[1]) / "hf"))

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager


class Scripted(LM):
    """Prefers the longest continuation, and gives the listed replies in order."""

    def __init__(self, replies):
        super().__init__()
        self.replies = iter(replies)

    def loglikelihood(self, requests, **_):
        return [(float(len(request.args[1])) - 100.0, False) for request in requests]

    def loglikelihood_rolling(self, requests, **_):
        return [0.0 for _ in requests]

    def generate_until(self, requests, **_):
        return [next(self.replies) for _ in requests]


WORDS = """
task: colours
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}/colours.jsonl}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{{{question}}}}\\nAnswer:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""

SUMS = """
task: sums
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}/sums.jsonl}}}}
test_split: test
output_type: generate_until
doc_to_text: "Q: {{{{question}}}}\\nA:"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["Q:"]}}
metric_list:
  - {{metric: exact_match, ignore_case: true, regexes_to_ignore: ["(?s).*#### ", ","]}}
filter_list:
  - name: strict-match
    filter: [{{function: regex, regex_pattern: "#### (\\\\-?[0-9\\\\.\\\\,]+)"}}, {{function: take_first}}]
  - name: flexible-extract
    filter: [{{function: regex, group_select: -1, regex_pattern: "(-?[$0-9.,]{{2,}})|(-?[0-9]+)"}}, {{function: take_first}}]
"""

COLOURS = [
    {"question": "Which colour has the sky?", "choices": ["red", "blue", "green"], "answer": 1},
    {"question": "Which colour has grass?", "choices": ["red", "blue", "green"], "answer": 2},
    {"question": "Which colour has a rose?", "choices": ["crimson", "blue"], "answer": 0},
]


def main(folder):
    sums = [{"question": f"What is {n} + {n}?", "answer": f"It is twice {n}.\n#### {2 * n}"} for n in range(4)]
    for name, rows in [("colours", COLOURS), ("sums", sums)]:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = folder / "tasks"
    tasks.mkdir()
    (tasks / "colours.yaml").write_text(WORDS.format(data=folder))
    (tasks / "sums.yaml").write_text(SUMS.format(data=folder))
    manager = TaskManager(include_path=str(tasks), include_defaults=False)
    model = Scripted(["Nothing. #### 0", "1 + 1 is 3. #### 3", "I think 4", "no idea"])
    tracker = EvaluationTracker(output_path=str(folder / "out"))
    tracker.general_config_tracker.log_experiment_args(
        model_source="scripted", model_args="pretrained=acme/bright", system_instruction=None, chat_template=None,
        fewshot_as_multiturn=False,
    )
    found = lm_eval.simple_evaluate(
        model=model, tasks=["colours", "sums"], task_manager=manager, log_samples=True, bootstrap_iters=0,
        evaluation_tracker=tracker,
    )
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for task, rows in samples.items():
        tracker.save_results_samples(task_name=task, samples=rows)


main(Path(sys.argv[1]))
