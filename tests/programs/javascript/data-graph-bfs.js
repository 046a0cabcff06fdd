const g = { a: ["b", "c"], b: ["d"], c: ["d"], d: ["e"], e: [] };
const bfs = (from, to) => { const q = [[from]], seen = new Set([from]); while (q.length) { const path = q.shift(), at = path.at(-1); if (at === to) return path; for (const n of g[at]) if (!seen.has(n)) { seen.add(n); q.push([...path, n]); } } };
console.log(bfs("a", "e"), bfs("e", "a"));
