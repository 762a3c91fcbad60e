"""The official Python client against the mock server, at the address in OPENAI_BASE_URL. Prints one line a part; any failure is an error."""

import asyncio
import json

import openai
import pydantic
from openai import AsyncOpenAI, OpenAI

client = OpenAI(max_retries=0)
ask = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "What is 6 times 7?"}]}]
weather = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"town": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
            "required": ["town", "days"],
            "additionalProperties": False,
        },
    },
}


class Step(pydantic.BaseModel):
    explanation: str
    sure: bool


class Solution(pydantic.BaseModel):
    answer: int
    steps: list[Step]
    note: str | None


# models
names = [model.id for model in client.models.list()]
assert "medium" in names, names
print("models ok")

# chat
chat = client.chat.completions.create(model="gpt-4o-mini", messages=ask, seed=3, temperature=0.2, logprobs=True)
choice = chat.choices[0]
assert chat.object == "chat.completion" and choice.finish_reason == "stop" and choice.message.role == "assistant"
assert choice.message.content and choice.message.refusal is None and choice.message.tool_calls is None
assert chat.usage.total_tokens == chat.usage.prompt_tokens + chat.usage.completion_tokens > 0
assert chat.usage.prompt_tokens_details.cached_tokens == chat.usage.completion_tokens_details.reasoning_tokens == 0
assert "".join(token.token for token in choice.logprobs.content) == choice.message.content
print("chat ok")

# tool
tool = client.chat.completions.create(model="medium", messages=ask, tools=[weather], tool_choice="required")
message = tool.choices[0].message
assert tool.choices[0].finish_reason == "tool_calls" and message.content is None
call = message.tool_calls[0]
arguments = json.loads(call.function.arguments)
assert call.type == "function" and call.function.name == "weather" and 1 <= arguments["days"] <= 7, call
result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
after = client.chat.completions.create(model="medium", messages=[*ask, message.model_dump(), result], tools=[weather])
assert after.choices[0].finish_reason == "stop" and after.choices[0].message.content
print("tool ok")

# stream with usage
chunks = list(
    client.chat.completions.create(model="medium", messages=ask, stream=True, stream_options={"include_usage": True})
)
assert chunks[0].choices[0].delta.role == "assistant" and chunks[-1].choices == []
assert all(chunk.usage is None for chunk in chunks[:-1]) and chunks[-1].usage.total_tokens > 0
assert chunks[-2].choices[0].finish_reason == "stop" and chunks[-2].choices[0].delta.content is None
assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])
print("stream ok")

# stream of a tool, put together by the client itself
with client.chat.completions.stream(
    model="medium", messages=ask, tools=[openai.pydantic_function_tool(Solution)], tool_choice="required"
) as stream:
    final = stream.get_final_completion()
streamed = final.choices[0].message.tool_calls[0].function
assert streamed.name == "Solution" and isinstance(streamed.parsed_arguments, Solution), streamed
print("stream of a tool ok")

# a loop of calls: two at once, one more, and an answer; the ids go back and forth
def named(name):
    return {"type": "function", "function": {**weather["function"], "name": name}}


offered = [named(name) for name in ("weather", "news", "traffic")]


def looped(turn):
    messages, rounds = list(ask), []
    while True:
        message, finish = turn(messages)
        if not message.tool_calls:
            assert finish == "stop" and message.content, message
            return rounds
        assert finish == "tool_calls" and len({call.id for call in message.tool_calls}) == len(message.tool_calls)
        rounds.append([call.function.name for call in message.tool_calls])
        assert all(json.loads(call.function.arguments) == {"town": ask[1]["content"][0]["text"], "days": 1} for call in message.tool_calls)
        messages.append(message.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]


def whole(messages):
    choice = client.chat.completions.create(model="medium", messages=messages, tools=offered).choices[0]
    return choice.message, choice.finish_reason


def streamed_turn(messages):
    with client.chat.completions.stream(model="medium", messages=messages, tools=offered) as stream:
        choice = stream.get_final_completion().choices[0]
    return choice.message, choice.finish_reason


assert looped(whole) == [["weather", "news"], ["traffic"]]
print("loop of calls ok")
assert looped(streamed_turn) == [["weather", "news"], ["traffic"]]
print("streamed loop of calls ok")
single = client.chat.completions.create(model="medium", messages=ask, tools=offered, parallel_tool_calls=False)
assert len(single.choices[0].message.tool_calls) == 1
assert client.chat.completions.create(model="medium", messages=ask, tools=offered, tool_choice="none").choices[0].message.content
try:
    client.chat.completions.create(model="medium", messages=[*ask, result], tools=offered)
    raise SystemExit("a result without a call was taken")
except openai.BadRequestError as error:
    assert "no call before it" in error.message

# structured parse
parsed = client.chat.completions.parse(model="medium", messages=ask, response_format=Solution)
assert isinstance(parsed.choices[0].message.parsed, Solution), parsed
print("parse ok")

# embeddings: base64 is what the client asks for by itself
texts = ["a red house", "two dogs", "a red car"]
coded = client.embeddings.create(model="text-embedding-3-small", input=texts, dimensions=64)
plain = client.embeddings.create(model="text-embedding-3-small", input=texts, dimensions=64, encoding_format="float")
for i in range(3):
    a, b = coded.data[i].embedding, plain.data[i].embedding
    assert len(a) == len(b) == 64 and max(abs(x - y) for x, y in zip(a, b)) < 1e-6
print("embeddings ok")

# errors have the client's own types
try:
    client.chat.completions.create(model="medium", messages=[])
    raise SystemExit("a request without messages was taken")
except openai.BadRequestError as error:
    assert "messages" in error.message
print("errors ok")


# batches: a file of lines, an order, a file of results
lines = [
    {"custom_id": f"line-{i}", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "medium", "messages": [
        {"role": "user", "content": f"question {i}"}]}}
    for i in range(3)
]
lines.append({**lines[0], "custom_id": "bad", "body": {"model": "medium", "messages": []}})
file = client.files.create(file=("lines.jsonl", "\n".join(json.dumps(line) for line in lines).encode()), purpose="batch")
assert file.purpose == "batch" and client.files.retrieve(file.id).bytes == file.bytes
batch = client.batches.create(
    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"polity": "name"}
)
assert batch.object == "batch" and batch.status in ("validating", "in_progress"), batch
while batch.status != "completed":
    batch = client.batches.retrieve(batch.id)
assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (4, 3, 1)
results = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
assert {line["custom_id"] for line in results} == {"line-0", "line-1", "line-2"}
assert all(line["response"]["status_code"] == 200 and line["response"]["body"]["choices"] for line in results)
failed = [json.loads(line) for line in client.files.content(batch.error_file_id).text.splitlines()]
assert failed[0]["custom_id"] == "bad" and failed[0]["response"]["status_code"] == 400, failed
assert [listed.metadata for listed in client.batches.list(limit=1)][0] == {"polity": "name"}
assert client.batches.cancel(batch.id).status == "completed"
print("batches ok")


# many at once
async def many():
    several = AsyncOpenAI(max_retries=0)
    replies = await asyncio.gather(
        *(
            several.chat.completions.create(model="small", messages=[{"role": "user", "content": f"question {i}"}])
            for i in range(50)
        )
    )
    assert len({reply.id for reply in replies}) == 50


asyncio.run(many())
print(f"many at once ok, with openai {openai.__version__}")
