import re
log = "2024-01-01 ERROR db down\n2024-01-01 INFO start\n2024-01-02 ERROR disk full"
rows = [m.groupdict() for m in re.finditer(r"(?P<day>\S+) (?P<level>\w+) (?P<text>.*)", log)]
print([r["text"] for r in rows if r["level"] == "ERROR"], rows[1])
