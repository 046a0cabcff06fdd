import re
ok = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]{2,}").fullmatch
print([bool(ok(s)) for s in ("a@b.co", "x.y+z@d-e.org", "no@", "a b@c.de")], re.escape("a.b*c"))
try: re.compile("(")
except re.error as e: print("error", e.pos)
