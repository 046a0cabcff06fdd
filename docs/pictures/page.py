#!/usr/bin/env python3
"""The pictures of the web page in the README: a run that was killed and resumed, in a light and a dark theme.

    python3 docs/pictures/page.py                    # writes page-light.webp and page-dark.webp

Needs what `record.py` needs, and Chromium on PATH (or its path in CHROMIUM). It makes the run of `record.py`, starts
`longhaul serve` on a free port of loopback, and drives a headless Chromium over a pipe. Data directory, project and
profile of the browser lie in a temporary directory, which it removes. Refuses to write a picture of more than 150 KB,
and one of a page that shows an error.
"""

import base64
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import record

HERE = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT = 1280, 800
PICTURE_BYTES_MAX = 150_000
QUALITY = 88
PATIENCE_S = 60
BROWSERS = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"]

# What the page has to show before its picture is taken.
SHOWN = ["3 of 5", "flatten", "reverse_words"]


class Browser:
    """A headless Chromium that is told what to do over a pipe, a JSON object and a zero byte each time."""

    def __init__(self, profile):
        names = [os.environ["CHROMIUM"]] if "CHROMIUM" in os.environ else BROWSERS
        program = next(filter(None, map(shutil.which, names)), None)
        if program is None:
            sys.exit("there is no Chromium on PATH; install it, or name it in CHROMIUM")
        (told, self.tell), (self.hear, heard) = os.pipe(), os.pipe()
        # Chromium reads descriptor 3 and writes descriptor 4.
        start = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", start, "bash", str(told), str(heard), program, *options],
            pass_fds=(told, heard), env=os.environ | {"TMPDIR": str(profile.parent)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(told)
        os.close(heard)
        self.number, self.left, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.tell, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def next_message(self):
        while b"\0" not in self.left:
            part = os.read(self.hear, 1 << 20)
            if not part:
                sys.exit("Chromium ended; start it by hand to see why")
            self.left += part
        message, self.left = self.left.split(b"\0", 1)
        return json.loads(message)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def end(self):
        self.process.terminate()
        self.process.wait()


def killed_and_resumed(place):
    """The data directory's variables, the project, and the run that was killed and resumed in it."""
    variables = record.environment(place)
    project = record.make_project(place)
    for crash, arguments in [("git.after-ref-move:2", ["run", "--recorded", "recording.jsonl"]), ("", ["resume"])]:
        more = {"LONGHAUL_CRASH_AT": crash} if crash else {}
        subprocess.run(["longhaul", *arguments], cwd=project, env=variables | more,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    listed = subprocess.run(["longhaul", "runs"], cwd=project, env=variables, check=True, stdout=subprocess.PIPE,
                            text=True)
    run = re.search(r"r-[0-9a-f]{12}", listed.stdout)
    if run is None:
        sys.exit(f"there is no run: {listed.stdout}")
    return variables, project, run.group()


def serve(project, variables):
    """A server without tokens on a free port of loopback, and its address."""
    server = subprocess.Popen(["longhaul", "serve", "--no-token", "--listen", "127.0.0.1:0"],
                              cwd=project, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in server.stdout:
        found = re.search(r"serving at (http://\S+)", line)
        if found:
            return server, found.group(1).rstrip("/")
    sys.exit("the server ended before it served")


def take(browser, address, theme):
    browser.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme},
                                                         {"name": "prefers-reduced-motion", "value": "reduce"}])
    # A page of another address is loaded anew, and not just moved within.
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=address)
    until = time.monotonic() + PATIENCE_S
    while True:
        text = browser.value("document.body ? document.body.innerText : ''") or ""
        if all(words in text for words in SHOWN):
            break
        if time.monotonic() > until:
            sys.exit(f"the page does not show {SHOWN}; it shows: {text[:2000]}")
        time.sleep(0.2)
    # Parts of the page that are asked for one by one.
    time.sleep(2)
    shot = browser.call("Page.captureScreenshot", format="webp", quality=QUALITY)
    picture = base64.b64decode(shot["data"])
    if len(picture) > PICTURE_BYTES_MAX:
        sys.exit(f"the picture has {len(picture)} bytes, and may have {PICTURE_BYTES_MAX}")
    (HERE / f"page-{theme}.webp").write_bytes(picture)


def main():
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="longhaul-picture-", ignore_cleanup_errors=True) as directory:
        place = pathlib.Path(directory).resolve()
        variables, project, run = killed_and_resumed(place)
        server, base = serve(project, variables)
        try:
            browser = Browser(place / "profile")
            try:
                for theme in ("light", "dark"):
                    take(browser, f"{base}/#/runs/{run}", theme)
            finally:
                browser.end()
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


if __name__ == "__main__":
    main()
