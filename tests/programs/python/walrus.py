data = [1, 5, 8]
if (n := len(data)) > 2: print(n)
print([y for x in data if (y := x * 2) > 5], y); i = 0
while (i := i + 1) < 3: print(i)
