"""The official Python client against the mock server, at the address in OLLAMA_HOST. Prints one line a part; any failure is an error."""

import importlib.metadata
import json
import os

import ollama

client = ollama.Client(host=os.environ["OLLAMA_HOST"])
ask = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 6 times 7?"}]
schema = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["town", "days"],
}

# models
names = [model.model for model in client.list().models]
assert "medium" in names, names
assert client.show("medium").modelinfo["polity.context_length"] > 0
print("models ok")

# chat
said = client.chat(model="medium", messages=ask, options={"seed": 3, "num_predict": 500})
assert said.done and said.done_reason == "stop" and said.message.role == "assistant" and said.message.content, said
assert said.prompt_eval_count > 0 and said.eval_count > 0
print("chat ok")

# structured
said = client.chat(model="medium", messages=ask, format=schema)
assert 1 <= json.loads(said.message.content)["days"] <= 7, said
print("structured ok")

# stream
pieces = list(client.chat(model="medium", messages=ask, stream=True))
assert "".join(piece.message.content for piece in pieces) and pieces[-1].done and pieces[-1].eval_count > 0
assert not any(piece.done for piece in pieces[:-1])
print("stream ok")

# a loop of calls: two at once, one more, and an answer; in one piece and in many. The client leaves out the bounds of numbers.
offered = [
    {"type": "function", "function": {"name": name, "description": "Tells it", "parameters": schema}} for name in ("weather", "news", "traffic")
]


def looped(turn):
    messages, rounds = list(ask), []
    while True:
        text, calls = turn(messages)
        if not calls:
            assert text
            return rounds
        rounds.append([call.function.name for call in calls])
        assert all(call.function.arguments == {"town": "What is 6 times 7?", "days": 0} for call in calls), calls
        messages.append({"role": "assistant", "content": text, "tool_calls": [call.model_dump() for call in calls]})
        messages += [{"role": "tool", "tool_name": call.function.name, "content": "sunny"} for call in calls]


def whole(messages):
    said = client.chat(model="medium", messages=messages, tools=offered)
    return said.message.content, said.message.tool_calls


def streamed(messages):
    pieces = list(client.chat(model="medium", messages=messages, tools=offered, stream=True))
    return "".join(piece.message.content for piece in pieces), [call for piece in pieces for call in piece.message.tool_calls or []]


assert looped(whole) == looped(streamed) == [["weather", "news"], ["traffic"]]
print("loop of calls ok")

# errors have the client's own types
try:
    client.chat(model="medium", messages=[])
    raise SystemExit("a request without messages was taken")
except ollama.ResponseError as error:
    assert error.status_code == 400 and "messages" in error.error
print(f"errors ok, with ollama {importlib.metadata.version('ollama')}")
