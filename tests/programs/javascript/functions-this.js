const o = { v: 1, f() { return this.v; }, g: function () { return [1].map(() => this.v); }, get h() { return this.v + 1; } };
const free = o.f;
console.log(o.f(), o.g(), o.h, free.call({ v: 5 }), o.f.bind({ v: 9 })(), o.f.apply({ v: 3 }, []));
