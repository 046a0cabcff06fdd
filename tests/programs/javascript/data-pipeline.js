const pipe = (...f) => (x) => f.reduce((v, g) => g(v), x);
const stats = pipe((t) => t.match(/\w+/g), (w) => w.map((x) => x.toLowerCase()), (w) => Object.groupBy ? w : w, (w) => w.reduce((m, x) => ({ ...m, [x.length]: (m[x.length] ?? 0) + 1 }), {}));
console.log(stats("The quick brown fox jumps over a lazy dog"));
