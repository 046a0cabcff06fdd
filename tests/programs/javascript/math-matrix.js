const mul = (a, b) => a.map((r) => b[0].map((_, j) => r.reduce((s, v, k) => s + v * b[k][j], 0)));
console.log(mul([[1, 2], [3, 4]], [[5, 6], [7, 8]]), mul([[1, 0, 2]], [[1], [2], [3]]));
