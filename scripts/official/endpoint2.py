"""A scripted endpoint in the form of OpenAI's chat completions, for runs of other people's programs without a model.

A rule reads each request and says what it is and what the reply is. Every reply carries its own mark (`mark-0007`), so that the log shows who
was shown whose text.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
METHODS = ROOT / "crates/polity-catalog/methods"
MARK = re.compile(r"mark-(\d{4})")


def told(messages):
    """All text of a conversation."""
    parts = []
    for message in messages:
        content = message.get("content") or ""
        parts.append(content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content))
    return "\n".join(parts)


class Endpoint:
    """Serves one case. `rule(request, n)` returns a dictionary for the n-th reply of a request: `text`, in which MARK stands for the mark, and
    facts to log: `kind`, and `member` or `round`."""

    def __init__(self, rule):
        self.rule, self.calls, self.requests = rule, [], 0
        self.failure = None
        self.lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                try:
                    texts = endpoint.replies(request)
                except Exception as error:  # A program may retry for ever; the driver must hear of it.
                    endpoint.failure = endpoint.failure or error
                    print(f"no reply: {error!r}", file=sys.stderr, flush=True)
                    self.send_error(400, "the script has no reply")
                    return
                self.answer(request, texts)

            def answer(self, request, texts):
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                head = {"id": "x", "created": 1, "model": request.get("model", "")}
                if request.get("stream"):
                    lines = []
                    for part in ({"role": "assistant", "content": texts[0]}, {}):
                        end = None if part else "stop"
                        token = {"token": "x", "logprob": 0.0, "bytes": None, "top_logprobs": []}
                        certain = {"content": [token]} if request.get("logprobs") else None
                        choice = {"index": 0, "delta": part, "finish_reason": end, "logprobs": certain}
                        lines.append(json.dumps(head | {"object": "chat.completion.chunk", "choices": [choice]}))
                    body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
                    kind = "text/event-stream"
                else:
                    choices = [
                        {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
                        for i, text in enumerate(texts)
                    ]
                    body = json.dumps(head | {"object": "chat.completion", "choices": choices, "usage": usage}).encode()
                    kind = "application/json"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def replies(self, request):
        """Answers a request and logs it: one entry for each reply."""
        with self.lock:
            prompt = told(request["messages"])
            shown = sorted({int(mark) for mark in MARK.findall(prompt)})
            texts = []
            for n in range(request.get("n") or 1):
                facts = self.rule(request | {"prompt": prompt}, n)
                text = facts.pop("text").replace("MARK", f"mark-{len(self.calls):04}")
                settings = {key: request[key] for key in ("temperature", "max_tokens") if key in request}
                self.calls.append(facts | settings | {"request": self.requests, "shown": shown})
                texts.append(text)
            self.requests += 1
            return texts

    def close(self):
        """Stops serving, and raises what went wrong."""
        self.server.shutdown()
        self.server.server_close()
        if self.failure:
            raise self.failure


class Queue:
    """The scripted replies of a case: for each kind a list, of which each is used once, in order."""

    def __init__(self, replies):
        self.replies, self.used = replies, {}

    def next(self, kind):
        """The next reply of a kind."""
        n = self.used.get(kind, 0)
        self.used[kind] = n + 1
        return self.replies[kind][n]


def case(name, settings, replies, endpoint, answer, **more):
    """The facts of one run."""
    return {
        "name": name,
        "settings": settings,
        "replies": replies,
        "calls": endpoint.calls,
        "number_of_calls": endpoint.requests,
        **more,
        "answer": answer,
    }


def write(method, facts):
    """Writes `official.json` of a method: one line for each call."""
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    # A call on one line.
    text = re.sub(r"\{[^{}]*\"shown\": \[[^\]]*\][^{}]*\}", lambda m: re.sub(r"\s*\n\s*", " ", m.group()), text)
    (METHODS / method / "official.json").write_text(text + "\n")
    for each in facts["cases"]:
        print(f"{method} {each['name']}: {each['number_of_calls']} requests, answer {each['answer']!r}")
