const it = { from: 1, to: 3, [Symbol.iterator]() { let n = this.from; return { next: () => n <= this.to ? { value: n++, done: false } : { value: undefined, done: true }, return() { console.log("closed"); return {}; } }; } };
for (const x of it) { if (x === 2) break; console.log(x); }
console.log([...it], Math.max(...it), Array.from(it, (x) => x * x), Object.fromEntries([["a", 1]]));
