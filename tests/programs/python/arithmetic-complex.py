z = 3 + 4j
print(abs(z), z.conjugate(), z * 1j, z ** 2, complex("1+2j"), z == 3 + 4j)
