lines = ["3", "x", "10", "", "7"]
nums = (int(l) for l in lines if l.isdigit()); big = (n for n in nums if n > 3); print(sum(n * n for n in big), list(big))
