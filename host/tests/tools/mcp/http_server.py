"""A server of streamable HTTP, made with the Python SDK: prints its port, and says who asked with which token."""

import socket
import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("letters")


@server.tool()
def shout(text: str, context: Context) -> str:
    """Write a text in capitals."""
    return text.upper()


@server.tool()
def authorization(context: Context) -> str:
    """Say what came as authorization."""
    return context.request_context.request.headers.get("authorization", "none")


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
print(port, flush=True)
server.run(transport="streamable-http", host="127.0.0.1", port=port)
