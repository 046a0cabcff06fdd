const spiral = (m) => { const out = []; m = m.map((r) => [...r]); while (m.length) { out.push(...m.shift()); m = m[0]?.map((_, i) => m.map((r) => r[r.length - 1 - i])) ?? []; } return out; };
console.log(spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), [[1, 2], [3, 4]].map((r) => r.join(" ")).join("\n"));
