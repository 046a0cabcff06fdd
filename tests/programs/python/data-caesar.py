def rot(s, n): return "".join(chr((ord(c) - b + n) % 26 + b) if c.isalpha() and (b := 65 if c.isupper() else 97) else c for c in s)
print(rot("Hello, World!", 3), rot(rot("Hello, World!", 3), -3))
