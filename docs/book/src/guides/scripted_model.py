"""A stand-in for a model: answers OpenAI's protocol with the lines of a file, one after the other.

    python3 scripted_model.py REPLIES PORT

Each line of REPLIES is one reply, and the last one is repeated. The pages of this book use it, so that their commands
run without a key. It listens on 127.0.0.1 alone, understands nothing, and ends by itself after 10 minutes.
"""

import json
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

replies = [line.strip() for line in open(sys.argv[1]) if line.strip()]


class Model(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer("application/json", json.dumps({"data": [{"id": "scripted", "max_model_len": 32768}]}))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = replies.pop(0) if len(replies) > 1 else replies[0]
        usage = {"prompt_tokens": len(str(request["messages"])) // 4, "completion_tokens": len(text) // 4}
        reply = {"id": "1", "model": "scripted", "usage": usage}
        if request.get("stream"):
            chunk = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
            events = [reply | {"choices": [chunk]}, "[DONE]"]
            lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
            self.answer("text/event-stream", "".join(f"data: {line}\n\n" for line in lines))
        else:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.answer("application/json", json.dumps(reply | {"choices": [choice]}))

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


signal.alarm(600)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Model).serve_forever()
