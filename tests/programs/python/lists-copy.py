import copy
a = [[1], [2]]; b = a[:]; c = copy.deepcopy(a); a[0].append(9)
print(a, b, c, a is b, a[0] is b[0])
