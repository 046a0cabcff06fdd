import random
random.seed(42)
print(random.random(), random.randint(1, 100), random.choice("abc"), random.sample(range(100), 3), [round(random.gauss(0, 1), 4) for _ in range(2)])
l = list(range(5)); random.shuffle(l); print(l)
