"""A server made with FastMCP, or with the official package. Usage: server.py fastmcp|official stdio|http PORT"""

import sys

maker, transport, port = sys.argv[1:]
if maker == "fastmcp":
    from fastmcp import FastMCP as Server
else:
    from mcp.server import MCPServer as Server

server = Server("sums")


@server.tool(annotations={"readOnlyHint": True} if maker == "fastmcp" else None)
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def broken(reason: str) -> str:
    """Raises an error."""
    raise ValueError(reason)


@server.resource("note://today")
def today() -> str:
    """What is on today."""
    return "Nothing."


@server.prompt()
def greet(whom: str) -> str:
    """Greets somebody."""
    return f"Say hello to {whom}."


if transport == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(port))
