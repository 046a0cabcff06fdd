def roman(n):
    out = ""
    for v, r in zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split()):
        out += r * (n // v); n %= v
    return out
print([roman(n) for n in (1, 4, 9, 14, 40, 1994, 2024)])
