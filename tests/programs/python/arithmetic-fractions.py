from fractions import Fraction
print(Fraction(1, 3) + Fraction(1, 6), Fraction("0.125"), Fraction(22, 7).limit_denominator(3), [Fraction(1, 2)])
