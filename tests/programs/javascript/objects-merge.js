const merge = (a, b) => { const o = { ...a }; for (const [k, v] of Object.entries(b)) o[k] = v && typeof v === "object" && !Array.isArray(v) ? merge(o[k] ?? {}, v) : v; return o; };
console.log(merge({ a: { x: 1, y: 2 }, l: [1] }, { a: { y: 3, z: { w: 1 } }, l: [2] }), Object.assign({}, null, { q: 1 }));
