#!/usr/bin/env python3
"""A chat endpoint that answers as GLM-4.5 does, with thoughts beside the text and calls of tools. It counts what it is sent.

    python3 systems/glm/endpoint.py 8123 polity run systems/glm/scenario.yaml --model openai/glm-4.5 -P items.count=4 --out glm-wire

It starts the command with OPENAI_BASE_URL set to itself, and then says for each member how its requests switched thinking, and whether any thought
came back in a later request or stands in an answer of the run.
"""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

THOUGHT = "I wonder where this could be written."
seen, leaks = Counter(), 0


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        global leaks
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = json.dumps(asked["messages"])
        member = "Solver" if "with your tools" in said else "Planner"
        thinks = (asked.get("thinking") or {}).get("type")
        seen[member, thinks] += 1
        leaks += THOUGHT in said
        message = {"role": "assistant", "content": "One must look it up."}
        if thinks != "disabled":
            message["reasoning_content"] = THOUGHT
        if asked.get("tools") and not any(one["role"] == "tool" for one in asked["messages"]):
            question = next(one for one in asked["messages"] if one["role"] == "user")["content"]
            call = {"name": "search", "arguments": json.dumps({"query": str(question)[:60]})}
            message.update(content="", tool_calls=[{"id": "call_1", "type": "function", "function": call}])
        body = json.dumps({
            "id": "1", "object": "chat.completion", "created": 0, "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    port, command = int(sys.argv[1]), sys.argv[2:]
    server = ThreadingHTTPServer(("127.0.0.1", port), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    done = subprocess.run(command, env={**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "none"})
    out = command[command.index("--out") + 1]
    answers = subprocess.run([command[0], "export", out, "--table", "items", "--format", "jsonl"], capture_output=True, text=True).stdout
    calls = subprocess.run([command[0], "calls", out, "--full"], capture_output=True, text=True).stdout
    for (member, thinks), count in sorted(seen.items(), key=str):
        print(f"{member}: {count} requests with thinking {thinks}")
    print(f"{calls.count('Result of call')} results of tools shown; thoughts in later requests: {leaks}, in answers: {answers.count(THOUGHT)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
