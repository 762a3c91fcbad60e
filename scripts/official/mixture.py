"""Runs `generate_for_alpaca_eval.py` of togethercomputer/MoA whole, for the drivers of the mixture and of Self-MoA.

The program calls Together's service by a fixed address and loads a data set from a hub: the address is led to the scripted endpoint
and the data set is one made-up question. Nothing else is changed.
"""

import importlib
import json
import os
import sys
import tempfile
import types
import urllib.parse

import requests

from endpoint import Endpoint, Reply

#: Tokens allowed to a reference model. The aggregator is called with the program's own default, which tells the two apart.
TOKENS = 1000


class Items(list):
    """As much of a data set as the program uses."""

    def remove_columns(self, _):
        return self

    def map(self, function, **_):
        return Items({**item, **function(item)} for item in self)


def program(root):
    """The program, with its data set replaced."""
    items = Items([{"instruction": "What is the capital of Australia?"}])
    sys.modules["datasets"] = types.SimpleNamespace(load_dataset=lambda *_, **__: {"eval": items})
    sys.path.insert(0, str(root))
    return importlib.import_module("generate_for_alpaca_eval")


def redirect(endpoint):
    """Leads the program's requests to the endpoint."""
    send = requests.Session.request

    def request(session, method, url, **more):
        return send(session, method, endpoint.url + urllib.parse.urlsplit(url).path.removeprefix("/v1"), **more)

    requests.Session.request = request
    return send


def run(module, answers, final, models=None):
    """Runs references that give these answers (by layer and place; `None`: refused) and an aggregator. Returns log and output."""
    count = len(answers[0])
    models = models or [f"model-{n}" for n in range(count)]

    def script(call):
        layer, place = divmod(call.order, count)
        if call.max_tokens != TOKENS:
            assert call.model == models[0], "the aggregator is the first model"
            return Reply(final, len(answers), "aggregator", "aggregate")
        assert call.model == models[place], "references are asked in their order"
        return Reply(answers[layer][place], layer, place)

    output = os.path.join(tempfile.mkdtemp(), "output.json")
    with Endpoint(script) as endpoint:
        send = redirect(endpoint)
        try:
            module.main(
                model=models[0],
                output_path=output,
                reference_models=",".join(models),
                rounds=len(answers),
                max_tokens=TOKENS,
                num_proc=1,
            )
        finally:
            requests.Session.request = send
    [item] = json.load(open(output))
    answer = item["output"] and item["output"].split(" ", 1)[1]
    return endpoint.log, answer
