from collections import deque
g = {"a": "bc", "b": "d", "c": "d", "d": "e", "e": ""}
def bfs(s, t):
    q, seen = deque([[s]]), {s}
    while q:
        p = q.popleft()
        if p[-1] == t: return p
        for n in g[p[-1]]:
            if n not in seen: seen.add(n); q.append(p + [n])
print(bfs("a", "e"), bfs("e", "a"))
import heapq
w = {"a": {"b": 1, "c": 4}, "b": {"c": 2, "d": 6}, "c": {"d": 3}, "d": {}}
dist, h = {}, [(0, "a")]
while h:
    d, n = heapq.heappop(h)
    if n in dist: continue
    dist[n] = d
    for m, c in w[n].items(): heapq.heappush(h, (d + c, m))
print(dist)
