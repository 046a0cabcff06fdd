"""A fake of the child process that serves a local model: speaks the protocol and obeys the last message."""
import json, os, sys, time


def say(id, **body):
    print(json.dumps({"id": id, **body}), flush=True)


def done(id, text, stop="end"):
    say(id, done={"text": text, "stop_reason": stop, "prompt_tokens": 9, "cached_tokens": 4, "output_tokens": 2})


arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
starts = os.path.join(os.path.dirname(sys.argv[0]), "starts")
with open(starts, "a") as file:
    file.write("start\n")
mode = sys.argv[0].rsplit("/", 1)[1]
if mode == "refuses":
    say(None, error={"kind": "bad_model", "message": "not a GGUF file"})
    sys.exit(1)
if mode == "dies-early":
    sys.exit("no memory\x1b[31m left")
if mode == "sleeps":
    time.sleep(60)
say(None, info={"name": "fake", "context_tokens_max": 2048, "memory_bytes_max": 1})
while line := sys.stdin.readline():
    call = json.loads(line)
    id = call["id"]
    if "cancel" in call:
        continue
    wish = call["complete"]["messages"][-1]["content"]
    if wish == "die":
        print("first words\nlast words", file=sys.stderr, flush=True)
        os._exit(3)
    elif wish == "die later":
        done(id, "ok")
        os._exit(3)
    elif wish == "slow":
        say(id, token="one ")
        cancelled = json.loads(sys.stdin.readline())
        assert cancelled["cancel"] == id
        done(id, "one ", "cancelled")
    elif wish == "deaf":
        say(id, token="one ")
        time.sleep(60)
    elif wish == "junk":
        print("Segmentation fault", flush=True)
    elif wish == "flood":
        sys.stdout.write("x" * (5 << 20))
        sys.stdout.flush()
        time.sleep(60)
    elif wish == "too long":
        say(id, error={"kind": "prompt_too_long", "message": "m"})
    elif wish == "facts":
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        leaked = sorted(name for name in os.environ if name not in ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "LC_CTYPE"))
        done(id, json.dumps([nice, arguments, leaked]))
    elif wish == "schema":
        done(id, json.dumps(call["complete"]["schema"]))
    elif wish.startswith("say "):
        done(id, wish[4:])
    else:
        say(id, token="he")
        say(99, token="stale")
        say(id, token="llo")
        done(id, "hello")
