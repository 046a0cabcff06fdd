print(7 // 2, -7 // 2, 7 % -3, 2 ** 100, 7 / 2, divmod(-7, 3), round(2.5), round(3.14159, 2), abs(-3), 0.1 + 0.2)
print(0xff, 0b101, 0o17, 1_000, int("ff", 16), bin(10), hex(255), oct(8), 1e16, 1e-5, float("inf"), -0.0)
