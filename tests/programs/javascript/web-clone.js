const src = { d: new Date(0), m: new Map([[1, { a: [1] }]]), s: new Set(["x"]), r: /a/gi, b: new Uint8Array([1, 2]), n: null, u: undefined, e: new TypeError("t") };
src.self = src;
const copy = structuredClone(src);
copy.m.get(1).a.push(2);
console.log(copy.d instanceof Date, copy.m, src.m, copy.s, copy.r, copy.b, copy.self === copy, copy.e.name, copy.e instanceof TypeError);
try { structuredClone({ f() {} }); } catch (e) { console.log(e.name); }
