"""Durable steps of DBOS, for the bench `appends`, which starts this with the address of a database of its own.

For each line `CALLERS MILLISECONDS` on standard input it has so many workflows make steps, each one after the other,
and answers with the line `STEPS P50_MICROSECONDS`: the steps that ended in so long a time, which begins when every
workflow has made its first. A step returns text, which DBOS stores. Its pool has a connection for each caller; all else
is as its makers set it, but for the log, which tells errors alone.
"""

import sys
import time

from dbos import DBOS

URL, RECORD_BYTES, CALLERS_MAX = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

DBOS(
    config={
        "name": "appends",
        "system_database_url": URL,
        "sys_db_pool_size": CALLERS_MAX,
        "log_level": "ERROR",
    }
)


class Slice:
    """The steps of all workflows, each as its begin and its end."""

    def __init__(self):
        self.ended = False
        self.steps = []
        self.begun = set()


current = Slice()


@DBOS.step()
def append() -> str:
    return "x" * RECORD_BYTES


@DBOS.workflow()
def work(number: int) -> None:
    # Steps are counted in memory, which no workflow that is recovered should do; none is here.
    while not current.ended:
        begin = time.perf_counter()
        append()
        current.steps.append((begin, time.perf_counter()))
        current.begun.add(number)


def measure(callers: int, milliseconds: int) -> str:
    global current
    current = Slice()
    handles = [DBOS.start_workflow(work, number) for number in range(callers)]
    while len(current.begun) < callers:
        time.sleep(0.001)
    since = time.perf_counter()
    time.sleep(milliseconds / 1_000)
    until = time.perf_counter()
    current.ended = True
    for handle in handles:
        handle.get_result()
    times = sorted(end - begin for begin, end in current.steps if since <= end < until)
    assert times, "no step ended in the slice; make it longer"
    # As many as would have ended in the time that was asked for.
    count = len(times) * milliseconds / 1_000 / (until - since)
    return f"{count:.0f} {times[len(times) // 2] * 1e6:.0f}"


DBOS.launch()
print("ready", flush=True)
for line in sys.stdin:
    print(measure(*(int(part) for part in line.split())), flush=True)
DBOS.destroy()
