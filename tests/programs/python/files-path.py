from pathlib import PurePosixPath as P
p = P("/a/b") / "c.tar.gz"
print(p, p.name, p.stem, p.suffixes, p.parent, p.with_suffix(".zip"), p.relative_to("/a"), p.parts, P("a/../b"))
import os.path as o
print(o.join("a", "/b"), o.basename("/x/y"), o.splitext("f.tar.gz"), o.normpath("a//b/../c"))
