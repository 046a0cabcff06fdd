"""The parent of a test run: it starts the runner, holds its report channel and signs what came through it.

Runs as `python3 -I -S`, so that nothing of the work is imported here, and is not dumpable, so that nothing inside the
sandbox can read the key or the channel from it; on Linux it refuses to start a test otherwise. It refuses to report
without a key, which it reads once from a file that it removes before anything else starts.
"""

import hashlib
import json
import os
import select
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Bytes of reports that are taken: some hundred thousand tests.
REPORT_BYTES_MAX = 64 << 20

# Seconds that what is left in the channel is waited for once the runner ended.
DRAIN_S = 0.2


def main():
    not_dumpable()
    with open(os.path.join(HERE, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    os.remove(os.path.join(HERE, "plan.json"))
    key = plan.pop("key")
    if plan["mode"] == "prepare":
        code, body = prepare(plan)
    else:
        code, body = observe(plan, plan["argv"], plan["mode"])
    write_record(key, body)
    return code


def not_dumpable():
    """Ends this process where Linux does not let it: the work could read the key and sign a record of its own."""
    try:
        import ctypes

        zero = ctypes.c_ulong(0)
        failed = ctypes.CDLL(None).prctl(4, zero, zero, zero, zero) != 0  # PR_SET_DUMPABLE
        why = "the system refuses prctl; allow it" if failed else None
    except ImportError:
        why = "this Python has no ctypes; install it"
    except (OSError, AttributeError):
        why = "this Python cannot call prctl; use another one"
    if why and sys.platform.startswith("linux"):
        sys.exit("the judge cannot hide its key: %s, or say evidence = \"exit\"" % why)


def write_record(key, body):
    """The digest is nested, so that nobody can lengthen a body that was signed."""
    body = json.dumps(body).encode()
    inner = hashlib.sha256(key.encode() + body).hexdigest()
    tag = hashlib.sha256((key + inner).encode()).hexdigest()
    path = os.path.join(HERE, "record")
    # What the runner left there is not written into.
    if os.path.lexists(path):
        os.remove(path)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(tag.encode() + b"\n" + body)


def observe(plan, argv, mode):
    """Runs `argv` with a channel; the exit code and the record."""
    read_end, write_end = os.pipe()
    nonce_read, nonce_write = os.pipe()
    nonce = os.urandom(16).hex()
    os.write(nonce_write, nonce.encode())
    os.close(nonce_write)
    env = dict(os.environ, LONGHAUL_REPORT=json.dumps({
        "fds": [write_end, nonce_read], "mode": mode, "work": os.getcwd(), "kept": plan.get("kept", []),
        "literals": plan.get("literals", {}), "modules": plan.get("modules", {}),
    }))
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [HERE, env.get("PYTHONPATH")]))
    try:
        # In our process group, which ends as one: what ends us leaves no record.
        runner = subprocess.Popen(argv, env=env, pass_fds=(write_end, nonce_read))
    except OSError as error:
        sys.stderr.write("cannot start `%s`: %s\n" % (argv[0], error))
        return 127, {"exit": 127, "events": [], "broken": "the runner did not start"}
    finally:
        os.close(write_end)
        os.close(nonce_read)
    data = drain(read_end, runner)
    os.close(read_end)
    code = runner.returncode
    code = 128 - code if code < 0 else code
    events, broken = understood(data, nonce)
    return code, {"exit": code, "events": events, "broken": broken}


def drain(fd, runner):
    """What comes through the channel until the runner has ended; something else may hold the other end for longer."""
    os.set_blocking(fd, False)
    data, ended_at = bytearray(), None
    while True:
        ready, _, _ = select.select([fd], [], [], 0.01)
        if ready:
            chunk = os.read(fd, 1 << 16)
            if not chunk:
                runner.wait()
                return bytes(data)
            if len(data) <= REPORT_BYTES_MAX:
                data += chunk
            continue
        if runner.poll() is not None:
            ended_at = ended_at or time.monotonic()
            if time.monotonic() - ended_at > DRAIN_S:
                return bytes(data)


def understood(data, nonce):
    """The events, and what is wrong with them as a whole."""
    if len(data) > REPORT_BYTES_MAX:
        return [], "there are more reports than are taken"
    events = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            event = json.loads(line.decode())
            known, counted = event.pop("nonce"), event.pop("seq")
        except (ValueError, KeyError, AttributeError, UnicodeDecodeError):
            return events, "something else wrote into the report channel"
        if known != nonce or counted != number:
            return events, "a report has no nonce or is out of order"
        events.append(event)
    if not events or "end" not in events[-1] or any("end" in event for event in events[:-1]):
        return events, "the runner did not come to its end"
    return events, None


def prepare(plan):
    """What is expected and how it is audited; the work is not imported for that."""
    # Left out so far: nothing beside this file is imported otherwise.
    sys.path.insert(0, HERE)
    import longhaul_audit

    sys.stdout.flush()
    _, collected = observe(plan, plan["argv"], "collect")
    return 0, longhaul_audit.prepared(plan, collected)


sys.exit(main())
