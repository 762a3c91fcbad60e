"""The official Python client against the mock server, at the address in GOOGLE_GEMINI_BASE_URL. Prints one line a part; any failure is an error."""

import os

import google.genai
import pydantic
from google import genai
from google.genai import errors, types

client = genai.Client(
    api_key=os.environ["GEMINI_API_KEY"], http_options=types.HttpOptions(base_url=os.environ["GOOGLE_GEMINI_BASE_URL"])
)
schema = {
    "type": "object",
    "properties": {"town": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["town", "days"],
}


class Trip(pydantic.BaseModel):
    town: str
    days: int


# models
names = [model.name for model in client.models.list()]
assert "models/medium" in names, names
assert client.models.get(model="gemini-2.5-flash").input_token_limit > 0
print("models ok")

# generate
said = client.models.generate_content(
    model="gemini-2.5-flash",
    contents="What is 6 times 7?",
    config=types.GenerateContentConfig(system_instruction="Be brief.", temperature=0.2, seed=3, max_output_tokens=500),
)
assert said.text and said.candidates[0].finish_reason == types.FinishReason.STOP, said
usage = said.usage_metadata
assert usage.total_token_count == usage.prompt_token_count + usage.candidates_token_count > 0
print("generate ok")

# JSON, by both kinds of schema
config = types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=schema)
said = client.models.generate_content(model="medium", contents="Where to?", config=config)
assert 1 <= Trip.model_validate_json(said.text).days <= 7, said.text
config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Trip)
said = client.models.generate_content(model="medium", contents="Where to?", config=config)
assert isinstance(said.parsed, Trip), said
print("structured ok")

# chat
chat = client.chats.create(model="medium")
first, second = chat.send_message("Hello."), chat.send_message("And again?")
assert first.text and second.text and len(chat.get_history()) == 4
print("chat ok")

# a loop of calls: two at once, one more, and an answer
declared = [
    types.FunctionDeclaration(name="weather", description="Tells it", parameters_json_schema=schema),
    types.FunctionDeclaration(name="news", parameters=types.Schema(type="OBJECT", properties={"town": types.Schema(type="STRING")}, required=["town"])),
    types.FunctionDeclaration(name="traffic", parameters_json_schema=schema),
]
config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
contents, rounds = [types.Content(role="user", parts=[types.Part(text="Where to?")])], []
while True:
    said = client.models.generate_content(model="medium", contents=contents, config=config)
    calls = said.function_calls
    if not calls:
        break
    assert all(call.args["town"] == "Where to?" for call in calls), calls
    rounds.append([call.name for call in calls])
    contents.append(said.candidates[0].content)
    answers = [types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"}) for call in calls]
    contents.append(types.Content(role="user", parts=[types.Part(function_response=answer) for answer in answers]))
assert rounds == [["weather", "news"], ["traffic"]] and said.text, rounds


def weather(town: str) -> str:
    """Tells the weather of a town."""
    asked.append(town)
    return "sunny"


# The client itself calls functions.
asked = []
said = client.models.generate_content(model="medium", contents="Where to?", config=types.GenerateContentConfig(tools=[weather]))
assert asked == ["Where to?"] and said.text
print("loop of calls ok")

# errors have the client's own types
try:
    client.models.generate_content(model="medium", contents=[types.Content(role="nobody", parts=[types.Part(text="?")])])
    raise SystemExit("a request with a wrong role was taken")
except errors.ClientError as error:
    assert error.code == 400 and error.status == "INVALID_ARGUMENT" and "role" in error.message
print(f"errors ok, with google-genai {google.genai.__version__}")
