function* g() { for (;;) { try { yield 1; } catch (e) { console.log("caught", e); } } }
const it = g();
it.next(); it.throw("boom");
console.log(it.next().value);
