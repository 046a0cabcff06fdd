import re
print(re.findall("^b", "a\nb", re.M), re.findall("A", "aA", re.I), re.search("a.b", "a\nb", re.S) is not None, re.sub(r"""(\d) # digit
""", r"<\1>", "a1", flags=re.X), re.compile("é").search("café").start())
