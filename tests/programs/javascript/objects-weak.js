const w = new WeakMap(), k = {};
w.set(k, "v");
console.log(w.get(k), w.has({}), new WeakSet([k]).has(k), new WeakRef(k).deref() === k);
