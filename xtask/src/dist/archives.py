"""Archives that depend on their content and on one time alone: tar.gz, and Debian's packages.

Own code in place of `cargo deb`, which is built for minutes: a Debian package is an `ar` of two of these archives.
"""

import gzip
import hashlib
import io
import tarfile

# Which files of a package an administrator may change.
CONFIGURATION = "etc/"


class Entry:
    """A file of an archive, by its path there."""

    def __init__(self, path, content, mode=0o644):
        self.path = path
        self.content = content if isinstance(content, bytes) else content.encode()
        self.mode = mode


def tar_gz(entries, epoch, prefix=""):
    """The archive: sorted, with every folder, of root, all of one time."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for folder in sorted({folder for entry in entries for folder in _folders(entry.path)}):
            archive.addfile(_info(prefix + folder, 0o755, epoch, tarfile.DIRTYPE))
        for entry in sorted(entries, key=lambda entry: entry.path):
            info = _info(prefix + entry.path, entry.mode, epoch, tarfile.REGTYPE)
            info.size = len(entry.content)
            archive.addfile(info, io.BytesIO(entry.content))
    return packed(raw.getvalue())


def packed(content):
    """Content in gzip's form, without a name and a time."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as stream:
        stream.write(content)
    return out.getvalue()


def deb(entries, control, scripts, epoch):
    """A Debian package. `control` is the text without its size, and `scripts` the texts of maintainer scripts by name."""
    size = sum(-(-len(entry.content) // 1024) for entry in entries)
    digests = "".join(f"{hashlib.md5(entry.content, usedforsecurity=False).hexdigest()}  {entry.path}\n"
                      for entry in sorted(entries, key=lambda entry: entry.path))
    description = [Entry("control", control.replace("Description:", f"Installed-Size: {size}\nDescription:", 1)),
                   Entry("md5sums", digests)]
    changeable = [f"/{entry.path}\n" for entry in entries if entry.path.startswith(CONFIGURATION)]
    if changeable:
        description.append(Entry("conffiles", "".join(changeable)))
    description += [Entry(name, text, 0o755) for name, text in scripts.items()]
    parts = [("debian-binary", b"2.0\n"), ("control.tar.gz", tar_gz(description, epoch, "./")),
             ("data.tar.gz", tar_gz(entries, epoch, "./"))]
    return b"!<arch>\n" + b"".join(_part(name, content, epoch) for name, content in parts)


def _part(name, content, epoch):
    head = f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
    return head + content + b"\n" * (len(content) % 2)


def _folders(path):
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]


def _info(path, mode, epoch, kind):
    info = tarfile.TarInfo(path)
    info.mode, info.mtime, info.type = mode, epoch, kind
    info.uname = info.gname = "root"
    return info
