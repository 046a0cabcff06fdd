#!/usr/bin/env python3
"""The recorded terminal of the README: a run that is killed with SIGKILL and goes on.

    python3 docs/pictures/record.py                  # runs it, writes first-run.cast and first-run.svg
    python3 docs/pictures/record.py --draw           # draws first-run.svg again from first-run.cast
    python3 docs/pictures/record.py --check          # ends with 1 where first-run.svg is not what first-run.cast draws

The first form needs bash, git, `longhaul` on PATH (or its path in LONGHAUL) and its plugins, as
`examples/02-survive-a-kill/run.sh` does. It types into a real bash behind a pseudo-terminal, in a copy of
`examples/01-first-run` and a data directory of its own, and leaves nothing behind. A recording answers for the model,
and `LONGHAUL_CRASH_AT` chooses the moment of the kill; all else is real.

The cast is a file of asciinema's second format. It holds what the terminal was sent, with ids, paths and times
normalised: a run has the same id in each recording, and times are multiples of 50 ms. The picture follows from the cast
alone. It holds text and no fonts, scripts or addresses, and plays at `slower` times the time that it took. Refuses to
write a picture of more than 60 KB, and to invent, drop or reorder a line. `onboard.py` makes another recording of the
same kind.
"""

import codecs
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE.parent.parent / "examples" / "01-first-run"


@dataclasses.dataclass(frozen=True)
class Film:
    """A recording: its files beside this one, its terminal, and how its picture plays and is headed."""

    name: str
    script: str
    columns: int
    rows: int
    title: str
    caption: str
    # The picture takes this many times the time of the cast.
    slower: int

    @property
    def cast(self):
        return HERE / f"{self.name}.cast"

    @property
    def picture(self):
        return HERE / f"{self.name}.svg"


FIRST_RUN = Film(
    name="first-run", script="record.py", columns=92, rows=30, title="A run that is killed goes on where it was",
    caption="a run, SIGKILL, a resume: at 1/4 of the speed", slower=4)

# The branch of the second commit has moved, and the journal does not know it yet.
COMMANDS = [
    "LONGHAUL_CRASH_AT=git.after-ref-move:2 longhaul run --recorded recording.jsonl",
    "longhaul resume",
    "git log --oneline main..longhaul/first-run",
    "longhaul replay | tail -n 3",
]

PROMPT = "$ "
COMMAND_S_MAX = 120
PICTURE_BYTES_MAX = 60_000
STEP_MS = 50

# How the picture plays.
BEFORE_COMMAND_S = 2.0
AFTER_COMMAND_S = 0.8
AFTER_END_S = 8.0

# The size of a cell, in the units of the picture.
CELL_WIDTH, CELL_HEIGHT, MARGIN, BAR = 8.45, 18, 16, 34


def environment(place):
    """Variables of the recorded shell: those of this process, and a terminal, a home and a prompt of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    program = shutil.which(os.environ.get("LONGHAUL", "longhaul"))
    if program is None:
        sys.exit("longhaul is not on PATH; build it, or name it in LONGHAUL")
    return shell_environment(place, program, kept) | {"LONGHAUL_HOME": str(place / "home")}


def shell_environment(place, program, kept):
    """The variables `kept`, and those by which every shell starts this program and prints alike."""
    # Bash would otherwise send marks of bracketed paste with each prompt.
    settings = place / "inputrc"
    settings.write_text("set enable-bracketed-paste off\n")
    directory = place / "bin"
    directory.mkdir()
    (directory / "longhaul").symlink_to(os.path.abspath(program))
    return kept | {
        "PATH": f"{directory}:{os.environ['PATH']}",
        "TERM": "xterm-256color",
        "INPUTRC": str(settings),
        "HISTFILE": "/dev/null",
        "GIT_PAGER": "cat",
        # No colours and no branches beside commits, whatever this user prefers.
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "color.ui",
        "GIT_CONFIG_VALUE_0": "never",
        "GIT_CONFIG_KEY_1": "log.decorate",
        "GIT_CONFIG_VALUE_1": "no",
        "LC_ALL": "C.UTF-8",
    }


def make_project(place):
    """The first example as a git repository of its own."""
    project = place / "first-run"
    project.mkdir()
    for name in ("GOAL.md", "longhaul.toml", "recording.jsonl"):
        shutil.copy(EXAMPLE / name, project)
    git = ["git", "-C", str(project), "-c", "user.name=you", "-c", "user.email=you@localhost"]
    subprocess.run([*git, "init", "--quiet", "--initial-branch", "main", "."], check=True)
    subprocess.run([*git, "add", "--all"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--message", "The goal"], check=True)
    return project


def record():
    """Events `[seconds, text]` of a terminal in which the commands were typed, one after the other."""
    with tempfile.TemporaryDirectory(prefix="longhaul-picture-") as directory:
        place = pathlib.Path(directory).resolve()
        variables = environment(place)
        project = make_project(place)
        # Compiles the plugins where the cache has none, so that no picture depends on the cache.
        subprocess.run(["longhaul", "check", "--recorded", "recording.jsonl"],
                       cwd=project, env=variables, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        events, _ = type_in_shell(FIRST_RUN, COMMANDS, project, variables)
        return normalise(events, place)


def type_in_shell(film, commands, directory, variables, seconds_max=COMMAND_S_MAX):
    """Events `[seconds, text]` of a terminal in which the commands are typed, and the seconds at which each was."""
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(directory)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], variables | {"PS1": PROMPT})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", film.rows, film.columns, 0, 0))
    try:
        events, typed, began = [], [], time.monotonic()
        read_to_prompt(terminal, events, began, seconds_max)
        for command in commands:
            typed.append(time.monotonic() - began)
            os.write(terminal, f"{command}\n".encode())
            read_to_prompt(terminal, events, began, seconds_max)
        return events, typed
    finally:
        os.write(terminal, b"exit\n")
        os.close(terminal)
        os.waitpid(shell, 0)


def read_to_prompt(terminal, events, began, seconds_max):
    """Reads until bash waits again, which it does when its prompt is the last that it wrote, in a line of its own."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    heard, until = "", time.monotonic() + seconds_max
    while not (heard == PROMPT or heard.endswith(f"\n{PROMPT}")):
        ready, _, _ = select.select([terminal], [], [], max(0, until - time.monotonic()))
        if not ready:
            sys.exit(f"no prompt after {seconds_max} s; the terminal has: {heard[-2000:]}")
        text = decoder.decode(os.read(terminal, 65_536))
        heard += text
        events.append([time.monotonic() - began, text])


def normalise(events, home):
    """Replaces whatever differs between two recordings by values that do not; `home` becomes the home of `you`."""
    text = "".join(text for _, text in events).replace(str(home), "/home/you")
    names = {}

    def stable(found):
        kind, name = found.group(1), found.group(2)
        number = names.setdefault((kind, name), len(names))
        return kind + hashlib.sha256(f"longhaul {number}".encode()).hexdigest()[: len(name)]

    # Events may be cut within an id, so the ids of the whole text are found first.
    for found in re.finditer(r"(r-)([0-9a-f]{12})\b", text):
        stable(found)
    commits = re.findall(r"committed \S+ as ([0-9a-f]{10}):", text)
    commits += re.findall(r"(?m)^([0-9a-f]{7,10}) ", text)
    made = {}
    for commit in commits:
        made.setdefault(commit[:7], hashlib.sha256(f"commit {len(made)}".encode()).hexdigest())
    done, at = [], 0
    for seconds, part in merged(events):
        part = part.replace(str(home), "/home/you")
        part = re.sub(r"(r-)([0-9a-f]{12})\b", stable, part)
        part = re.sub(r"\b[0-9a-f]{7,10}\b", lambda id: made.get(id.group()[:7], id.group())[: len(id.group())], part)
        at = max(at, round(seconds * 1000 / STEP_MS) * STEP_MS)
        if done and done[-1][0] == at / 1000:
            done[-1][1] += part
        else:
            done.append([at / 1000, part])
    return done


def merged(events):
    """Events that end between lines or redrawn lines, so that no id is cut in two."""
    whole = []
    for seconds, text in events:
        if whole and whole[-1][1] and not whole[-1][1].endswith((" ", "\n", "\r")):
            whole[-1][1] += text
        else:
            whole.append([seconds, text])
    return whole


def write_cast(film, events):
    head = {"version": 2, "width": film.columns, "height": film.rows, "title": film.title}
    lines = [json.dumps(head)] + [json.dumps([at, "o", text], ensure_ascii=False) for at, text in events]
    film.cast.write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cast(film):
    lines = film.cast.read_text(encoding="utf-8").splitlines()
    return [(at, text) for at, _, text in map(json.loads, lines[1:])]


class Terminal:
    """The part of a terminal that these programs use: rows of cells, each a character and its style."""

    def __init__(self, columns):
        self.columns = columns
        self.rows, self.row, self.column, self.style = [[]], 0, 0, ""

    def write(self, text):
        for found in re.finditer(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b.|(.)", text, re.S):
            if found.group(2):
                self.control(found.group(2), found.group(1))
            elif found.group(3):
                self.put(found.group(3))

    def put(self, character):
        if character == "\n":
            self.down()
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character >= " ":
            if self.column == self.columns:
                self.down()
                self.column = 0
            row = self.rows[self.row]
            row.extend([(" ", "")] * (self.column + 1 - len(row)))
            row[self.column] = (character, self.style)
            self.column += 1

    def down(self):
        self.row += 1
        if self.row == len(self.rows):
            self.rows.append([])

    def control(self, letter, numbers):
        first = int(numbers) if numbers.isdigit() else 0
        if letter == "K":
            # A terminal that waits to wrap erases the row that it is in.
            self.rows[self.row] = [] if first == 2 else self.rows[self.row][: self.column]
        elif letter == "J" and first == 0:
            del self.rows[self.row + 1 :]
            self.rows[self.row] = self.rows[self.row][: self.column]
        elif letter == "A":
            self.row = max(0, self.row - max(1, first))
        elif letter == "B":
            for _ in range(max(1, first)):
                self.down()
        elif letter == "G":
            self.column = max(1, first) - 1
        elif letter == "m":
            self.style = style(self.style, numbers)
        elif letter not in "hlJ":
            sys.exit(f"the picture has no rule for the control sequence {numbers}{letter}")


COLOURS = {"31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "purple", "36": "cyan", "90": "dim"}


def style(now, numbers):
    """Classes of the style sheet after a control sequence `m`."""
    for number in numbers.split(";"):
        if number in ("", "0"):
            now = ""
        elif number == "1":
            now = f"{now} bold".strip()
        elif number == "2":
            now = f"{now} dim".strip()
        elif number in COLOURS:
            now = f"{now} {COLOURS[number]}".strip()
        elif number in ("22", "39"):
            now = ""
    return now


def play(events, columns):
    """The rows in the end, and how many of them are as in the end at each time: `(seconds, rows)`."""
    terminal, seen = Terminal(columns), []
    for at, text in events:
        terminal.write(text)
        seen.append((at, [tuple(row) for row in terminal.rows]))
    rows, changed = seen[-1][1], []
    for number, row in enumerate(rows):
        since = seen[-1][0]
        for at, then in reversed(seen):
            if number >= len(then) or then[number] != row:
                break
            since = at
        changed.append(max(since, changed[-1] if changed else 0))
    return rows, [(at, changed.index(at) + changed.count(at)) for at in sorted(set(changed))]


def schedule(rows, moments, slower):
    """The same moments as the picture plays them: slower, with a pause before each command and after it."""
    played, pauses, shown = [], 0.0, 0
    for at, whole in moments:
        for count in range(shown + 1, whole + 1):
            # Rows of one moment appear together, and what follows a command appears after it.
            if words(rows[count - 1]).startswith(PROMPT):
                played.append((at * slower + pauses, count - 1))
                # The first command stands there from the start, so that no frame is empty.
                pauses += BEFORE_COMMAND_S if count > 1 else 0
                played.append((at * slower + pauses, count))
                pauses += AFTER_COMMAND_S
        played.append((at * slower + pauses, whole))
        shown = whole
    return played


def words(row):
    """The characters of a row, without their styles."""
    return "".join(character for character, _ in row)


def spans(row):
    """The text of a row as markup, with one element for each stretch of a style."""
    text = words(row).rstrip()
    if text.startswith(PROMPT):
        return f'<tspan class="dim">$</tspan> <tspan class="bold">{escape(text[len(PROMPT) :])}</tspan>'
    parts, start = [], 0
    for end in range(1, len(text) + 1):
        if end == len(text) or row[end][1] != row[start][1]:
            part = escape(text[start:end])
            parts.append(f'<tspan class="{row[start][1]}">{part}</tspan>' if row[start][1] else part)
            start = end
    return "".join(parts)


STYLE = """
svg{--back:#fff;--bar:#eceff1;--edge:#cfd5da;--text:#24292f;--dim:#6a737d;--red:#b42318;--green:#116329;
--yellow:#7d4e00;--blue:#0550ae;--purple:#6639ba;--cyan:#0b6a77}
@media(prefers-color-scheme:dark){svg{--back:#0d1117;--bar:#1b222b;--edge:#30363d;--text:#dbe2e9;--dim:#8b949e;
--red:#ff7b72;--green:#56d364;--yellow:#e3b341;--blue:#79c0ff;--purple:#d2a8ff;--cyan:#76d9e6}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;
fill:var(--text);white-space:pre}
.bold{font-weight:700}.dim{fill:var(--dim)}.red{fill:var(--red)}.green{fill:var(--green)}.yellow{fill:var(--yellow)}
.blue{fill:var(--blue)}.purple{fill:var(--purple)}.cyan{fill:var(--cyan)}
"""


def frames(name, places, whole_s):
    """Keyframes that put something at each of its places, `(seconds, offset)`, and leave it there until the next."""
    steps = [f"{at / whole_s * 100:.2f}%{{transform:translateY({offset:g}px)}}" for at, offset in places]
    return f"@keyframes {name}{{{''.join(steps)}}}"


def draw(film, events):
    rows, moments = play(events, film.columns)
    # The prompt after the last command ends the recording.
    last = len(rows) if words(rows[-1]).strip() != PROMPT.strip() else len(rows) - 1
    rows = rows[:last]
    played = schedule(rows, [(at, min(whole, last)) for at, whole in moments], film.slower)
    whole_s = played[-1][0] + AFTER_END_S
    scrolled = {count: -max(0, count - film.rows) * CELL_HEIGHT for _, count in played}
    content, cover = [], []
    for at, count in played:
        if count == 0:
            continue
        if not content or content[-1][1] != scrolled[count]:
            content.append((at, scrolled[count]))
        if not cover or cover[-1][1] != count * CELL_HEIGHT:
            cover.append((at, count * CELL_HEIGHT))
    # Whole from the beginning, and to the end.
    content[0], cover[0] = (0, content[0][1]), (0, cover[0][1])
    content.append((whole_s, content[-1][1]))
    cover.append((whole_s, cover[-1][1]))
    width, height = round(film.columns * CELL_WIDTH) + 2 * MARGIN, film.rows * CELL_HEIGHT + 2 * MARGIN + BAR
    top = BAR + MARGIN
    title = f"longhaul: {film.title[0].lower()}{film.title[1:]}"
    # Without animations, as where less motion is asked for, the picture shows the end.
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="title">',
        f'<title id="title">{title}</title>',
        f"<!-- Drawn by docs/pictures/{film.script} from {film.cast.name}. Do not edit. -->",
        f"<style>{STYLE}#rows{{transform:translateY({content[-1][1]:g}px)}}"
        f"#cover{{transform:translateY({cover[-1][1]:g}px)}}",
        f"@media(prefers-reduced-motion:no-preference){{#rows{{animation:rows {whole_s:g}s step-end infinite}}"
        f"#cover{{animation:cover {whole_s:g}s step-end infinite}}}}",
        frames("rows", content, whole_s),
        frames("cover", cover, whole_s) + "</style>",
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" '
        'fill="var(--back)" stroke="var(--edge)"/>',
        f'<path d="M1 {BAR}V8.5a7.5 7.5 0 0 1 7.5-7.5H{width - 8.5}a7.5 7.5 0 0 1 7.5 7.5V{BAR}z" fill="var(--bar)"/>',
        f'<text class="dim" x="{width / 2:g}" y="22" text-anchor="middle">'
        f"{film.caption}</text>",
        f'<clipPath id="window"><rect x="1" y="{top}" width="{width - 2}" height="{film.rows * CELL_HEIGHT}"/></clipPath>',
        '<g clip-path="url(#window)"><g id="rows">',
    ]
    for number, row in enumerate(rows):
        markup = spans(row)
        if markup:
            down = top + number * CELL_HEIGHT + 13
            lines.append(f'<text x="{MARGIN}" y="{down}" xml:space="preserve">{markup}</text>')
    lines += [
        f'<rect id="cover" x="1" y="{top}" width="{width - 2}" height="{(last + 1) * CELL_HEIGHT}" '
        'fill="var(--back)"/>',
        "</g></g></svg>",
    ]
    picture = "\n".join(lines) + "\n"
    if len(picture.encode()) > PICTURE_BYTES_MAX:
        sys.exit(f"the picture has {len(picture.encode())} bytes, and may have {PICTURE_BYTES_MAX}")
    return picture


def write_picture(film, picture):
    film.picture.write_text(picture, encoding="utf-8")


def check_picture(film, picture):
    if film.picture.read_text(encoding="utf-8") != picture:
        sys.exit(f"{film.picture.name} is not what {film.cast.name} draws; "
                 f"run: python3 docs/pictures/{film.script} --draw")


def main():
    arguments = sys.argv[1:]
    if arguments not in ([], ["--draw"], ["--check"]):
        sys.exit(__doc__)
    if not arguments:
        write_cast(FIRST_RUN, record())
    picture = draw(FIRST_RUN, read_cast(FIRST_RUN))
    if arguments == ["--check"]:
        check_picture(FIRST_RUN, picture)
    else:
        write_picture(FIRST_RUN, picture)


if __name__ == "__main__":
    main()
