from decimal import Decimal, ROUND_HALF_UP, getcontext
print(Decimal("0.1") + Decimal("0.2"), Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_UP), Decimal(1) / Decimal(7))
getcontext().prec = 5
print(Decimal(1) / Decimal(7), Decimal("1E+3"), Decimal("NaN").is_nan())
