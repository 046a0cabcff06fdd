#!/usr/bin/env python3
"""The recorded terminal of the book: `longhaul onboard` in an empty home, with a kill and a resume in its middle.

    python3 docs/pictures/onboard.py --program PATH  # runs it, writes onboard.cast and what follows from it
    python3 docs/pictures/onboard.py --draw          # writes onboard.svg and the transcript again from onboard.cast
    python3 docs/pictures/onboard.py --check         # ends with 1 where one of them is not what onboard.cast says

PATH is the program, such as `target/debug/longhaul`, with its plugins beside it or in LONGHAUL_PLUGINS. It is started
as `record.py` starts it, in a bash behind a pseudo-terminal of 80 columns. Its home is a directory of its own without a
data directory or a cache, so that plugins are compiled first; no other variable of Longhaul is passed on. Nothing is
left behind.

The transcript is the block below `MARK` in `start/install.md` of the book, and is left out where the page has no such
mark. The time from the command to the first commit is of one machine: it is printed and written nowhere, and the times
of the cast have no pause longer than `PAUSE_S_MAX`. Refuses to write a recording without the kill, the resume and the
comparison, and to invent, drop or reorder a line.
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile

import record

PAGE = record.HERE.parent / "book" / "src" / "start" / "install.md"
MARK = "<!-- docs/pictures/onboard.py writes the next block. -->"

ONBOARD = record.Film(
    name="onboard", script="onboard.py", columns=80, rows=30, title="A demo is made, killed and resumed",
    caption="longhaul onboard: a run, SIGKILL, a resume", slower=2)

COMMAND = "longhaul onboard --yes --provider recorded"

# Compiling the plugins takes minutes in a build for development on a busy machine.
COMMAND_S_MAX = 1_200
PAUSE_S_MAX = 0.5

# Wider than any line, so that none is broken.
TRANSCRIPT_COLUMNS = 10_000

# Lines that a recording must have.
NEEDED = {
    "the run": r"^longhaul run$",
    "the first commit": r"^ +committed \S+ as [0-9a-f]+: ",
    "the kill": r"^killed with SIGKILL",
    "the resume": r"^longhaul resume$",
    "the run that goes on": r"^ +run r-[0-9a-f]{12} goes on",
    "the comparison": r"none of the \d+ invocations? that had finished before the kill was executed again$",
    "the commits": r"^commits on longhaul/longhaul-demo:$",
}


def environment(place, home, program):
    """Variables of the recorded shell: nothing of this user's Longhaul, but for the place of its plugins."""
    dropped = ("LONGHAUL_", "XDG_")
    others = ("NO_COLOR", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(dropped) and name not in others}
    if "LONGHAUL_PLUGINS" in os.environ:
        paths = os.environ["LONGHAUL_PLUGINS"].split(":")
        kept["LONGHAUL_PLUGINS"] = ":".join(os.path.abspath(path) for path in paths if path)
    return record.shell_environment(place, program, kept) | {"HOME": str(home)}


def record_demo(program):
    """Events of the terminal, and the seconds from the command to the first commit."""
    with tempfile.TemporaryDirectory(prefix="longhaul-onboard-", ignore_cleanup_errors=True) as directory:
        place = pathlib.Path(directory).resolve()
        home = place / "you"
        home.mkdir(mode=0o700)
        variables = environment(place, home, program)
        events, typed = record.type_in_shell(ONBOARD, [COMMAND], home, variables, COMMAND_S_MAX)
        return record.normalise(events, home), first_commit_s(events, typed[0])


def first_commit_s(events, typed):
    """None where nothing was committed."""
    heard = ""
    for at, text in events:
        heard += text
        if re.search(r"\n *committed ", heard):
            return at - typed
    return None


def without_pauses(events):
    """The events in their order, with no pause that only tells how quick a machine was."""
    paced, at, before = [], 0.0, 0.0
    for seconds, text in events:
        at += min(seconds - before, PAUSE_S_MAX)
        before = seconds
        paced.append([round(at, 2), text])
    return paced


def transcript(events):
    """The lines that the terminal shows in the end, without the prompt after the command."""
    terminal = record.Terminal(TRANSCRIPT_COLUMNS)
    for _, text in events:
        terminal.write(text)
    lines = [record.words(row).rstrip() for row in terminal.rows]
    while lines and lines[-1] in ("", record.PROMPT.strip()):
        lines.pop()
    return "\n".join(lines) + "\n"


def expect_whole(text):
    missing = [what for what, line in NEEDED.items() if not re.search(line, text, re.MULTILINE)]
    if missing:
        sys.exit(f"nothing is written: the transcript lacks {', '.join(missing)}; it is:\n{text}")


def page_with(text):
    """The page of the book with this transcript; None where it has no place for one."""
    page = PAGE.read_text(encoding="utf-8")
    block = re.compile(re.escape(MARK) + r"\n```text\n.*?^```$", re.DOTALL | re.MULTILINE)
    if MARK in page and not block.search(page):
        sys.exit(f"{PAGE.name}: a block ```text has to follow the line: {MARK}")
    return block.sub(lambda _: f"{MARK}\n```text\n{text}```", page) if MARK in page else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--program", metavar="PATH")
    what.add_argument("--draw", action="store_true")
    what.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    if asked.program:
        if not os.access(asked.program, os.X_OK) or os.path.isdir(asked.program):
            sys.exit(f"{asked.program} is no program; build it, or name another with --program PATH")
        events, seconds = record_demo(asked.program)
        expect_whole(transcript(events))
        record.write_cast(ONBOARD, without_pauses(events))
        print(f"from the command to the first commit: {seconds:.1f} s, with an empty cache")
    events = record.read_cast(ONBOARD)
    text = transcript(events)
    expect_whole(text)
    picture, page = record.draw(ONBOARD, events), page_with(text)
    if asked.check:
        record.check_picture(ONBOARD, picture)
        if page is not None and page != PAGE.read_text(encoding="utf-8"):
            sys.exit(f"{PAGE.name} has another transcript; run: python3 docs/pictures/onboard.py --draw")
        return
    record.write_picture(ONBOARD, picture)
    if page is not None:
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
