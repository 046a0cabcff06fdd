"""A client of the Python SDK: does the calls of its first argument, a JSON list, and prints the answers as JSON.

The rest is the command of a server, or an address and perhaps a token.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

questions = []


async def person(context, params):
    questions.append(params.message)
    return types.ElicitResult(action="accept", content={"text": os.environ.get("MCP_SAYS", "skip")})


def target(arguments):
    if not arguments[0].startswith("http"):
        return StdioServerParameters(command=arguments[0], args=arguments[1:], env=dict(os.environ))
    headers = {"authorization": f"Bearer {arguments[1]}"} if arguments[1:] else {}
    return streamable_http_client(arguments[0], http_client=httpx2.AsyncClient(headers=headers))


async def main():
    mode = os.environ.get("MCP_MODE", "auto")
    async with Client(target(sys.argv[2:]), mode=mode, elicitation_callback=person) as client:
        listed = await client.list_tools()
        answers = []
        for name, arguments in json.loads(sys.argv[1]):
            result = await client.call_tool(name, arguments)
            text = "".join(part.text for part in result.content if part.type == "text")
            answers.append({"error": result.is_error, "text": text})
        told = {"version": str(client.protocol_version), "tools": [tool.name for tool in listed.tools]}
        print(json.dumps({**told, "answers": answers, "questions": questions}))


asyncio.run(main())
