text = "the cat and the dog and the bird"
counts = {}
for w in text.split(): counts[w] = counts.get(w, 0) + 1
print(sorted(counts.items(), key=lambda p: (-p[1], p[0])), max(counts, key=counts.get))
