"""What a built program asks of the machine that it runs on, read from the file itself."""

import re
import struct

# Libraries of glibc, and the loader. Nothing else is on every distribution.
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1",
             "ld-linux-x86-64.so.2"}

# The newest glibc of a distribution of 2018 and 2019.
GLIBC_MAX = (2, 28)

# The most that a program may have.
BYTES_MAX = 90 << 20

# The section with the list of dependencies.
AUDITED = b".dep-v0"


def faults(content, forbidden):
    """Why this program is not for release, one line each. `forbidden` are paths of this machine."""
    found = []
    if len(content) > BYTES_MAX:
        found.append(f"it has {len(content)} bytes, and at most {BYTES_MAX} are allowed")
    sections = _sections(content)
    strings = sections.get(b".dynstr", b"")
    needed = [_text(strings, value) for tag, value in struct.iter_unpack("<qQ", sections.get(b".dynamic", b""))
              if tag == 1]
    foreign = sorted(set(needed) - LIBRARIES)
    if foreign:
        found.append(f"it needs {', '.join(foreign)}, which not every distribution has")
    versions = {tuple(map(int, numbers.split(b"."))) for numbers in re.findall(rb"\0GLIBC_([0-9.]+)", strings)}
    newer = sorted(version for version in versions if version[:2] > GLIBC_MAX)
    if newer:
        found.append(f"it needs glibc {'.'.join(map(str, newer[-1]))}, newer than {'.'.join(map(str, GLIBC_MAX))}")
    if not sections.get(AUDITED):
        found.append(f"it has no section {AUDITED.decode()} with its dependencies")
    for path in forbidden:
        at = content.find(path.encode())
        if at >= 0:
            whole = re.match(rb"[!-~]{0,200}", content[at:]).group().decode()
            found.append(f"it contains the path `{path}` of this machine, in `{whole}`")
    return found


def _sections(content):
    if content[:6] != b"\x7fELF\x02\x01":
        raise SystemExit("error: the program is no ELF file of 64 bits")
    start, = struct.unpack_from("<Q", content, 0x28)
    size, count, names = struct.unpack_from("<HHH", content, 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", content, start + size * index) for index in range(count)]
    body = [content[head[4]:head[4] + head[5]] if head[1] != 8 else b"" for head in heads]
    return {_bytes(body[names], head[0]): body[index] for index, head in enumerate(heads)}


def _bytes(strings, at):
    return strings[at:strings.index(b"\0", at)]


def _text(strings, at):
    return _bytes(strings, at).decode()
