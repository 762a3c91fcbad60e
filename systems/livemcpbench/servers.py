#!/usr/bin/env python3
"""One of the twenty servers of `servers.json`, over stdin and stdout, in the Model Context Protocol.

    python3 servers.py NAME [dies | garbage]     a broken server dies at every call, or answers what is no message
"""

import json
import os
import select
import sys
from pathlib import Path

name, broken = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
server = json.loads((Path(__file__).resolve().parent / "servers.json").read_text(encoding="utf-8"))[name]
kind = server["kind"]
TOOLS = [{"name": tool, "description": what, "annotations": {"readOnlyHint": True},
          "inputSchema": {"type": "object", "properties": {kind: {"type": "string"}}, "required": [kind], "additionalProperties": False}}
         for tool, what in server["tools"].items()]


def called(tool, arguments):
    entity = str(arguments.get(kind, ""))
    value = server["facts"].get(tool, {}).get(entity)
    if value is None:
        return {"content": [{"type": "text", "text": f"no {kind} `{entity}` (known: {', '.join(server['entities'])})"}], "isError": True}
    text = f"{server['tools'][tool].split(' (')[0]}, {entity}: {value}"
    return {"content": [{"type": "text", "text": text}]}


def lines():
    """Lines of standard input, each with whether more has come already."""
    left = b""
    while True:
        while b"\n" not in left:
            read = os.read(0, 65536)
            if not read:
                return
            left += read
        line, left = left.split(b"\n", 1)
        yield line, bool(left) or bool(select.select([0], [], [], 0)[0])


def main():
    for line, more in lines():
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message:
            continue
        if method == "initialize":
            result = {"protocolVersion": params.get("protocolVersion", "2025-06-18"), "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "tools/call" and broken == "dies":
            sys.exit("the disk is full")
        elif method == "tools/call" and broken == "garbage":
            print("Traceback: this is no message", flush=True)
            continue
        elif method == "tools/call":
            result = called(params["name"], params.get("arguments") or {})
        elif method == "ping":
            result = {}
        elif more:
            # A client that asked what is not known here, and has gone on since, does not wait for the answer.
            continue
        else:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": f"no method {method}"}}), flush=True)
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
