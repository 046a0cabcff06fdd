b = bytearray(b"abc"); b[0] = 120; b += b"!"
print(b, bytes([1, 255]), b"a" + b"b", b"abc"[1], b"abc"[1:], bytes.fromhex("00ff"), b"hi".hex(), "a b".encode().split(), list(b"ab"), b"x" in b"axb")
