function* naturals() { let n = 1; while (true) yield n++; }
function* take(n, it) { for (const x of it) { if (n-- <= 0) return; yield x; } }
function* filter(p, it) { for (const x of it) if (p(x)) yield x; }
console.log([...take(5, filter((x) => x % 3 === 0, naturals()))]);
