from itertools import *
print(list(chain("ab", [1])), list(islice(count(5, 2), 3)), list(product("ab", [1, 2])), list(combinations("abc", 2)), len(list(permutations(range(4)))))
print(list(accumulate([1, 2, 3])), list(zip_longest("ab", "c", fillvalue="-")), list(takewhile(lambda x: x < 3, [1, 2, 5, 1])), list(dropwhile(lambda x: x < 3, [1, 5, 1])), list(starmap(pow, [(2, 3)])), list(pairwise("abc")), list(compress("abc", [1, 0, 1])), next(cycle("q")), list(repeat(1, 2)))
