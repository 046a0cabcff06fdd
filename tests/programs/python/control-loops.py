for n in range(2, 12):
    for d in range(2, n):
        if n % d == 0: break
    else: print(n, end=" ")
print()
while True:
    try: break
    finally: print("finally")
for i, (a, b) in enumerate(zip("xyz", [1, 2]), 1): print(i, a, b)
