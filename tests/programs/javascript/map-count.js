const text = "the cat and the dog and the bird";
const counts = text.split(" ").reduce((m, w) => m.set(w, (m.get(w) ?? 0) + 1), new Map());
console.log([...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])));
