import tempfile, os
with tempfile.TemporaryDirectory() as d:
    p = os.path.join(d, "a.txt")
    with open(p, "w") as f: f.write("one\ntwo\n")
    print(open(p).read().splitlines(), os.path.getsize(p))
