"""Sets the public home in what users fetch: python3 fill.py RELEASES PUBLIC_KEY DIRECTORY

RELEASES is the URL that `install.sh` fetches from, PUBLIC_KEY the line of the key of minisign, and DIRECTORY the files of
a release. Writes `install.sh` with both in it, and the formula `longhaul.rb`. The signed digests are of neither.
"""

import re
import sys
from pathlib import Path

PACKAGING = Path(__file__).resolve().parent
ARCHIVE = re.compile(r"([0-9a-f]{64})  longhaul-(.+)-x86_64-unknown-linux-gnu\.tar\.gz")


def main(releases, public_key, directory):
    found = ARCHIVE.search((Path(directory) / "SHA256SUMS").read_text())
    if not found:
        raise SystemExit(f"error: `{directory}/SHA256SUMS` has no archive of longhaul")
    for text in (releases, public_key):
        if not re.fullmatch(r"[A-Za-z0-9:/._+=-]*", text):
            raise SystemExit(f"error: `{text}` has characters that no URL and no key has")
    values = {"home": releases.removesuffix("/releases"), "releases": releases, "version": found[2], "sha256": found[1]}
    formula = (PACKAGING / "longhaul.rb").read_text().split("\n", 1)[1]
    for name, value in values.items():
        formula = formula.replace("{{" + name + "}}", value)
    (Path(directory) / "longhaul.rb").write_text(formula)
    script = (PACKAGING / "install.sh").read_text()
    script = script.replace("${LONGHAUL_RELEASES:-}", "${LONGHAUL_RELEASES:-" + releases + "}")
    script = script.replace("${LONGHAUL_PUBLIC_KEY:-}", "${LONGHAUL_PUBLIC_KEY:-" + public_key + "}")
    (Path(directory) / "install.sh").write_text(script)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
