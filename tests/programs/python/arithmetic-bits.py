print(5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 10, -9 >> 1, (255).to_bytes(2, "big"), int.from_bytes(b"\x01\x00", "little"), (37).bit_count())
