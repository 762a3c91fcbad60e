"""The official Python client against the mock server, at the address in ANTHROPIC_BASE_URL. Prints one line a part; any failure is an error."""

import json

import anthropic
from anthropic import Anthropic

client = Anthropic(max_retries=0)
ask = [{"role": "user", "content": [{"type": "text", "text": "What is 6 times 7?"}]}]
schema = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "mood": {"type": "string", "enum": ["calm", "angry"]}},
    "required": ["town", "mood"],
    "additionalProperties": False,
}

# models
names = [model.id for model in client.models.list()]
assert "medium" in names, names
model = client.models.retrieve("claude-haiku-4-5")
assert model.id == "claude-haiku-4-5" and model.max_input_tokens > 0 and model.capabilities.structured_outputs.supported
print("models ok")

# messages
said = client.messages.create(model="claude-haiku-4-5", max_tokens=500, system="Be brief.", messages=ask)
assert said.type == "message" and said.role == "assistant" and said.stop_reason == "end_turn", said
assert said.content[0].type == "text" and said.content[0].text
assert said.usage.input_tokens > 0 and said.usage.output_tokens > 0 and said.usage.cache_read_input_tokens == 0
print("messages ok")

# structured output
said = client.messages.create(
    model="medium", max_tokens=500, messages=ask, output_config={"format": {"type": "json_schema", "schema": schema}}
)
reply = json.loads(said.content[0].text)
assert reply["mood"] in ("calm", "angry") and isinstance(reply["town"], str), reply
print("structured ok")

# tool
said = client.messages.create(
    model="medium", max_tokens=500, messages=ask, tools=[{"name": "weather", "input_schema": schema}],
    tool_choice={"type": "tool", "name": "weather"},
)
call = said.content[0]
assert said.stop_reason == "tool_use" and call.type == "tool_use" and call.name == "weather" and "town" in call.input, said
result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}]}
after = client.messages.create(
    model="medium", max_tokens=500, messages=[*ask, {"role": "assistant", "content": [call.model_dump()]}, result]
)
assert after.stop_reason == "end_turn" and after.content[0].text
print("tool ok")

# stream, put together by the client itself
with client.messages.stream(model="medium", max_tokens=500, messages=ask) as stream:
    text = "".join(stream.text_stream)
    final = stream.get_final_message()
assert text and final.content[0].text == text and final.stop_reason == "end_turn" and final.usage.output_tokens > 0
print("stream ok")

# a loop of calls: two at once, one more, and an answer; in one piece and in many
offered = [{"name": name, "description": "Tells it", "input_schema": schema} for name in ("weather", "news", "traffic")]


def looped(turn):
    messages, rounds = list(ask), []
    while True:
        said = turn(messages)
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            assert said.stop_reason == "end_turn" and said.content[0].text
            return rounds
        assert said.stop_reason == "tool_use" and len({call.id for call in calls}) == len(calls)
        rounds.append([call.name for call in calls])
        assert all(call.input == {"town": ask[0]["content"][0]["text"], "mood": "calm"} for call in calls), calls
        messages.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in said.content]})
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]} for call in calls]
        messages.append({"role": "user", "content": results})


def streamed(messages):
    with client.messages.stream(model="medium", max_tokens=500, messages=messages, tools=offered) as stream:
        return stream.get_final_message()


assert looped(lambda messages: client.messages.create(model="medium", max_tokens=500, messages=messages, tools=offered)) == [
    ["weather", "news"],
    ["traffic"],
]
assert looped(streamed) == [["weather", "news"], ["traffic"]]
print("loop of calls ok")

# errors have the client's own types
try:
    client.messages.create(model="medium", max_tokens=5, messages=[])
    raise SystemExit("a request without messages was taken")
except anthropic.BadRequestError as error:
    assert "messages" in error.message and error.body["error"]["type"] == "invalid_request_error"
print(f"errors ok, with anthropic {anthropic.__version__}")

# batches
params = {"model": "medium", "max_tokens": 500, "messages": ask}
lines = [{"custom_id": f"line-{i}", "params": params} for i in range(3)]
batch = client.messages.batches.create(requests=lines)
assert batch.type == "message_batch" and batch.processing_status == "in_progress" and batch.request_counts.processing == 3
while batch.processing_status != "ended":
    batch = client.messages.batches.retrieve(batch.id)
assert batch.request_counts.succeeded == 3 and batch.ended_at and batch.results_url
results = {line.custom_id: line.result for line in client.messages.batches.results(batch.id)}
assert set(results) == {"line-0", "line-1", "line-2"}
assert all(result.type == "succeeded" and result.message.content[0].text for result in results.values()), results
assert batch.id in [listed.id for listed in client.messages.batches.list(limit=1)]
assert client.messages.batches.cancel(batch.id).processing_status == "ended"
try:
    client.messages.batches.create(requests=[lines[0], lines[0]])
    raise SystemExit("two lines of one name were taken")
except anthropic.BadRequestError as error:
    assert "custom_id" in error.message
print("batches ok")
