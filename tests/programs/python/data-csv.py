import csv, io
rows = list(csv.DictReader(io.StringIO('name,age\n"Smith, A",31\nBob,25\n')))
out = io.StringIO(); w = csv.DictWriter(out, ["name", "age"]); w.writeheader(); w.writerows(sorted(rows, key=lambda r: r["age"]))
print(rows, repr(out.getvalue()), sum(int(r["age"]) for r in rows))
