const base = { hi() { return "hi " + this.n; } };
const o = Object.create(base, { n: { value: "x", enumerable: true } });
console.log(o.hi(), Object.getPrototypeOf(o) === base, "hi" in o, Object.hasOwn(o, "hi"), Object.create(null), o);
function Old(n) { this.n = n; }
Old.prototype.get = function () { return this.n; };
console.log(new Old(3).get(), new Old(3), new Old(1) instanceof Old);
