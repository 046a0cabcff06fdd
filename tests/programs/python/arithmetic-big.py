import math
print(math.factorial(40), math.gcd(84, 36), math.comb(10, 3), math.isqrt(10 ** 20), pow(3, 200, 1000007), (1 << 130).bit_length())
