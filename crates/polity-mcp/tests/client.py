"""The official client: lists and calls the tools of the example `served`. Usage: client.py PROGRAM URL"""

import asyncio
import sys

from mcp import Client, StdioServerParameters


async def asked(way, server, **more):
    seen = []

    async def progress(done, total, message):
        seen.append((done, total, message))

    async with Client(server, **more) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == ["echo", "fail", "wait"], tools
        assert tools[0].annotations.read_only_hint, tools[0]
        result = await client.call_tool("echo", {"text": "grüß dich"})
        assert not result.is_error and result.content[0].text == "grüß dich", result
        result = await client.call_tool("echo", {"text": 5})
        assert result.is_error and "/text" in result.content[0].text, result
        result = await client.call_tool("fail", {})
        assert result.is_error and result.content[0].text == "it failed, as asked", result
        try:
            await asyncio.wait_for(client.call_tool("wait", {}, progress_callback=progress), 0.5)
            raise AssertionError("it waited")
        except asyncio.TimeoutError:
            assert seen and seen[0] == (0, 60, "waiting"), seen
        print(f"{way} {client.protocol_version} ok")


async def main(program, url):
    await asked("stdio", StdioServerParameters(command=program, args=["stdio"]))
    await asked("stdio legacy", StdioServerParameters(command=program, args=["stdio"]), mode="legacy")
    await asked("http", url)
    await asked("http legacy", url, mode="legacy")


asyncio.run(main(*sys.argv[1:]))
