const key = "dyn";
const o = { [key + 1]: 1, "quoted-key": 2, nested: { deep: { deeper: { deepest: 1 } } }, f() {}, g: () => {}, get acc() { return 1; }, set only(v) {}, s: Symbol("t"), [Symbol("k")]: 5 };
console.log(o);
const { nested: { deep }, ...others } = o;
console.log(Object.keys(others), deep, Object.entries({ a: 1, b: 2 }), Object.values("hi"));
