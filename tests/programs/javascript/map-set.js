const m = new Map([["a", 1], [{ k: 1 }, [2]], [NaN, "n"]]);
m.set("a", 9).delete("zz");
console.log(m, m.size, m.get(NaN), [...m.keys()].length);
const s = new Set([1, 1, "1", { a: 1 }]);
console.log(s, s.has("1"), [...new Set("hello")].join(""), new WeakMap(), new Map(), new Set());
for (const [k, v] of new Map([["x", { y: new Map([["z", 1]]) }]])) console.log(k, v);
