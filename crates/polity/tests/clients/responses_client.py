"""The official Python client against the mock server's responses endpoint, at the address in OPENAI_BASE_URL. Prints one line a part."""

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

# errors have the client's own types
try:
    client.responses.create(model="medium", input=[])
    raise SystemExit("a request without input was taken")
except openai.BadRequestError as error:
    assert "input" in error.message
print(f"errors ok, with openai {openai.__version__}")
