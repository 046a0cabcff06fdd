import heapq, bisect
h = [5, 1, 8]; heapq.heapify(h); heapq.heappush(h, 0)
print([heapq.heappop(h) for _ in range(4)], heapq.nlargest(2, [3, 9, 4]), heapq.nsmallest(1, "zab"), list(heapq.merge([1, 4], [2, 3])))
l = [1, 3, 5]; bisect.insort(l, 4); print(l, bisect.bisect_left(l, 3), bisect.bisect_right(l, 3))
