import io
f = io.StringIO("one\ntwo\nthree")
print(f.readline(), [l.strip() for l in f], f.tell()); f.seek(0); print(f.read(3))
b = io.BytesIO(b"\x00\x01abc"); b.seek(2); print(b.read(), b.getvalue()[:2])
