"""A fake MCP server over standard input and output that does one thing at a time.

In the folder that it is given, `pages.json` is its list of tools, a list a page, and `started` gets a line a start. Where
there is a file `endless`, each page is followed by itself. The tool `slow` makes a file `busy` and waits for a file `go`.
"""

import json
import os
import sys
import time

FOLDER = sys.argv[1]

with open(f"{FOLDER}/started", "a") as log:
    log.write(f"{os.getpid()}\n")


def has(name):
    return os.path.exists(f"{FOLDER}/{name}")


def page(cursor):
    at = int(cursor or 0)
    with open(f"{FOLDER}/pages.json") as file:
        pages = json.load(file)
    result = {"tools": pages[at]}
    if has("endless"):
        result["nextCursor"] = str(at)
    elif at + 1 < len(pages):
        result["nextCursor"] = str(at + 1)
    return result


def call(name, arguments):
    if name == "slow":
        open(f"{FOLDER}/busy", "w").close()
        while not has("go"):
            time.sleep(0.02)
    return json.dumps(arguments)


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        info = {"name": "fake", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return page(params.get("cursor"))
    if method == "tools/call":
        text = call(params["name"], params.get("arguments"))
        return {"content": [{"type": "text", "text": text}], "isError": False}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request)
    reply = {"jsonrpc": "2.0", "id": request["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
