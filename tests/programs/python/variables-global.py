total = 0
def add(n):
    global total; total += n
for n in range(4): add(n)
print(total, "total" in globals(), "n" in dir()); del total
try: total
except NameError as e: print("NameError")
