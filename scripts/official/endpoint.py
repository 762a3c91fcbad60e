"""A scripted model behind the OpenAI interface, for differential tests against official programs.

Every reply starts with a marker of its own (`mark-aaah`; no digits, since programs look for numbers) and goes on with the scripted
text; in a text that says MARK, the marker stands there instead, for programs that parse replies. The log keeps of each request its order, path, model, settings and the earlier markers that its prompt shows; from these follows
who was shown whose text.

In a Python driver, the script is a function from a `Call` to a `Reply` (or to `None`: the service refuses the request):

    with Endpoint(script) as endpoint:
        ...  # run the program against endpoint.url
    endpoint.log

From a shell, it is a JSON file with a list of replies, given in order of arrival (`null`: refused):

    python3 endpoint.py replies.json log.json 8765
"""

import dataclasses
import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MARKER = re.compile(r"mark-[a-z]{4}")


@dataclasses.dataclass
class Reply:
    """A reply: its text, and what the case calls it."""

    text: str
    round: int = 0
    member: object = None
    kind: str = "answer"
    bare: bool = False  # Without a marker, for programs that read the text as a whole.


@dataclasses.dataclass
class Call:
    """A request, as it arrived."""

    order: int
    path: str
    model: str
    prompt: str
    shown: list
    temperature: object
    max_tokens: object
    n: object
    marker: str = ""
    reply: object = None


def marker(order):
    """The marker of a call: its order in base 26."""
    return "mark-" + "".join(chr(ord("a") + order // 26**place % 26) for place in (3, 2, 1, 0))


def prompt_of(body):
    """The text of a request: of all messages, or of the prompt."""
    if "messages" not in body:
        return str(body.get("prompt", ""))
    texts = []
    for message in body["messages"]:
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += [part.get("text", "") for part in parts]
    return "\n".join(texts)


def stream(reply, body):
    """A reply in one piece and an end, as events."""
    token = {"token": "", "logprob": 0.0, "bytes": None, "top_logprobs": []}
    logprobs = {"content": [token]} if body.get("logprobs") else None
    said = reply["choices"][0]["message"]
    events = []
    for delta, end in ((said, None), ({}, "stop")):
        choice = {"index": 0, "delta": delta, "finish_reason": end, "logprobs": logprobs}
        events.append(json.dumps(reply | {"object": "chat.completion.chunk", "choices": [choice]}))
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])


class Endpoint:
    """Serves one script. Requests are answered one at a time, in order of arrival."""

    def __init__(self, script, port=0):
        self.script, self.log, self.lock = script, [], threading.Lock()
        self.failure = None
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, reply = endpoint.answer(self.path, body)
                streamed = status == 200 and body.get("stream")
                data = stream(reply, body).encode() if streamed else json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        if self.failure:
            raise self.failure

    def answer(self, path, body):
        """The status and the body of the reply to a request."""
        with self.lock:
            texts = []
            for _ in range(body.get("n") or 1):
                text = self.one(path, body)
                if text is None:
                    error = {"message": "refused by the script", "type": "invalid_request_error", "code": None}
                    return 400, {"error": error}
                texts.append(text)
        chat = "messages" in body
        said = lambda text: {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        return 200, {
            "id": "scripted",
            "object": "chat.completion" if chat else "text_completion",
            "created": 0,
            "model": body.get("model") or "",
            "choices": [{"index": i, "finish_reason": "stop", **said(text)} for i, text in enumerate(texts)],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }

    def one(self, path, body):
        """The text of one reply, with its marker; logs the call."""
        prompt = prompt_of(body)
        call = Call(
            order=len(self.log),
            path=path,
            model=body.get("model") or re.sub(r".*/engines/([^/]+)/.*", r"\1", path),
            prompt=prompt,
            shown=list(dict.fromkeys(MARKER.findall(prompt))),
            temperature=body.get("temperature"),
            max_tokens=body.get("max_tokens"),
            n=body.get("n"),
        )
        self.log.append(call)
        try:
            call.reply = self.script(call)
        except Exception as error:  # A program may try again for ever; the driver hears of it.
            self.failure = self.failure or error
            print(f"the script has no reply: {error!r}", file=sys.stderr, flush=True)
        if call.reply is None or call.reply.text is None:
            return None
        call.marker = marker(call.order)
        text = call.reply.text
        if call.reply.bare:
            return text
        return text.replace("MARK", call.marker) if "MARK" in text else f"{call.marker} {text}"


def main():
    replies, log, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    texts = json.load(open(replies))

    def script(call):
        text = texts[call.order] if call.order < len(texts) else None
        return None if text is None else Reply(text)

    with Endpoint(script, port) as endpoint:
        print(endpoint.url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
    with open(log, "w") as file:
        json.dump([dataclasses.asdict(call) for call in endpoint.log], file, indent=1)


if __name__ == "__main__":
    main()
