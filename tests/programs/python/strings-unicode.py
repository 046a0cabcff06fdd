import unicodedata
s = "e\u0301👍naïve"
print(len(s), len(unicodedata.normalize("NFC", s)), s.encode(), b"\xe2\x82\xac".decode(), "é".encode("latin-1"), ascii("é"), unicodedata.name("é"), ord("€"), chr(128077), "a\xffb".encode("utf-8", "replace"))
try: b"\xff".decode()
except UnicodeDecodeError as e: print(e.reason, b"\xff".decode(errors="replace") == "\ufffd")
