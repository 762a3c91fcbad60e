"""The official Python client against a team, `polity serve --method sc@3 --max-calls 16`, at the address in OPENAI_BASE_URL. Prints one
line a part; any failure is an error."""

import openai
from openai import OpenAI

MODEL = "polity/sc@3"
sent = []
hooks = {"request": [lambda request: sent.append(request.url.path)]}
# With its usual number of retries.
client = OpenAI(http_client=openai.DefaultHttpxClient(event_hooks=hooks))
question = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 6 times 7?"}]


def refused(kind, **more):
    """The error of a request, which must have been sent once."""
    before = len(sent)
    try:
        client.chat.completions.create(**{"model": MODEL, "messages": question, **more})
    except kind as error:
        assert len(sent) == before + 1, sent[before:]
        return error
    raise SystemExit(f"not refused: {more}")


# models
assert [model.id for model in client.models.list()] == [MODEL]
assert client.models.retrieve(MODEL).owned_by == "polity"
print("models ok")

# chat: usage is the sum over the members, and the id names the run
chat = client.chat.completions.create(model=MODEL, messages=question, seed=3, temperature=0.5)
choice = chat.choices[0]
assert chat.object == "chat.completion" and choice.finish_reason == "stop" and choice.message.role == "assistant"
assert choice.message.content and chat.id.startswith("chatcmpl-") and chat.model == MODEL
assert chat.usage.total_tokens == chat.usage.prompt_tokens + chat.usage.completion_tokens > 0
assert chat.polity["calls"] == 3 and chat.polity["run"] == chat.id
print("chat ok")

# the same request with the same seed is the same run
again = client.chat.completions.create(model=MODEL, messages=question, seed=3, temperature=0.5)
assert again.id != chat.id and again.polity["digest"] == chat.polity["digest"]
assert again.choices[0].message.content == choice.message.content
other = client.chat.completions.create(model=MODEL, messages=question, seed=4, temperature=0.5)
assert other.polity["digest"] != chat.polity["digest"]
print("seeds ok")

# stream
chunks = list(
    client.chat.completions.create(
        model=MODEL, messages=question, seed=3, temperature=0.5, stream=True, stream_options={"include_usage": True}
    )
)
assert chunks[0].choices[0].delta.role == "assistant" and chunks[-2].choices[0].finish_reason == "stop"
assert chunks[-1].choices == [] and chunks[-1].usage == chat.usage
assert all(chunk.usage is None for chunk in chunks[:-1])
assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == choice.message.content
print("stream ok")

# what a team does not support is refused, once, before anything is spent
error = refused(openai.BadRequestError, n=2)
assert error.param == "n" and error.code == "unsupported_parameter", error
assert refused(openai.BadRequestError, tools=[{"type": "function", "function": {"name": "weather"}}]).param == "tools"
image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}]}]
assert refused(openai.BadRequestError, messages=image).param == "messages"
assert refused(openai.NotFoundError, model="polity/moa").code == "model_not_found"
print("refusals ok")

# after a fifth answer of three calls, one call of the budget is left, which is not enough for a sixth
client.chat.completions.create(model=MODEL, messages=question)
error = refused(openai.RateLimitError)
assert error.code == "insufficient_quota" and "--max-calls" in error.message, error
print(f"budget ok, with openai {openai.__version__}")
