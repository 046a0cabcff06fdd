l = [3, 1, 2]; l.append(5); l.extend([7, 8]); l.insert(1, 9); l.remove(1); l.sort(key=lambda x: -x); l.reverse()
print(l, l.pop(), l.pop(0), l.index(5), l.count(9), l[::-1], l[1:3], l[-2:], [0] * 3, [1, 2] < [1, 3], l.copy() == l)
l[1:2] = ["a", "b"]; del l[0]; print(l, len(l), [[]] * 2)
