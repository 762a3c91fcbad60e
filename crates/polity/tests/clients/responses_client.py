"""The official Python client against the mock server's responses endpoint, at the address in OPENAI_BASE_URL. Prints one line a part."""

import json

import openai
import pydantic
from openai import OpenAI

client = OpenAI(max_retries=0)


class Trip(pydantic.BaseModel):
    town: str
    days: int


# responses
said = client.responses.create(model="gpt-5-mini", instructions="Be brief.", input="What is 6 times 7?", max_output_tokens=500)
assert said.object == "response" and said.status == "completed" and said.output_text and said.error is None, said
assert said.usage.total_tokens == said.usage.input_tokens + said.usage.output_tokens > 0
ask = [{"role": "user", "content": [{"type": "input_text", "text": "And 6 times 8?"}]}]
again = client.responses.create(model="medium", input=[*ask, *[item.model_dump() for item in said.output], *ask])
assert again.output_text
print("responses ok")

# structured parse
said = client.responses.parse(model="medium", input=ask, text_format=Trip)
assert isinstance(said.output_parsed, Trip), said
print("parse ok")

# a loop of calls: two at once, one more, and an answer; the ids go back and forth
parameters = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"], "additionalProperties": False}
offered = [
    {"type": "function", "name": name, "description": "Tells it", "parameters": parameters, "strict": True}
    for name in ("weather", "news", "traffic")
]


def looped(turn):
    items, rounds = list(ask), []
    while True:
        said = turn(items)
        assert said.status == "completed"
        calls = [item for item in said.output if item.type == "function_call"]
        if not calls:
            assert said.output_text
            return rounds
        rounds.append([call.name for call in calls])
        assert all(json.loads(call.arguments) == {"town": "And 6 times 8?"} for call in calls)
        items += [item.model_dump(exclude_none=True) for item in said.output]
        items += [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls]


def streamed(items):
    with client.responses.stream(model="medium", input=items, tools=offered) as stream:
        kinds = [event.type for event in stream]
        assert kinds[0] == "response.created" and kinds[-1] == "response.completed", kinds
        return stream.get_final_response()


assert looped(lambda items: client.responses.create(model="medium", input=items, tools=offered)) == [["weather", "news"], ["traffic"]]
print("loop of calls ok")
assert looped(streamed) == [["weather", "news"], ["traffic"]]
with client.responses.stream(model="medium", input=ask) as stream:
    texts = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
    assert texts and texts == stream.get_final_response().output_text
print("stream ok")
forced = client.responses.create(model="medium", input=ask, tools=offered, tool_choice={"type": "function", "name": "news"})
assert [item.name for item in forced.output] == ["news"]

# errors have the client's own types
try:
    client.responses.create(model="medium", input=[])
    raise SystemExit("a request without input was taken")
except openai.BadRequestError as error:
    assert "input" in error.message
print(f"errors ok, with openai {openai.__version__}")
