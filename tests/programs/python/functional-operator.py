from operator import itemgetter, attrgetter, methodcaller, add, mul
print(sorted([(2, "a"), (1, "b")], key=itemgetter(1)), itemgetter(0, 2)("abc"), methodcaller("upper")("x"), attrgetter("real")(5), add(1, 2), list(map(mul, [1, 2], [3, 4])))
