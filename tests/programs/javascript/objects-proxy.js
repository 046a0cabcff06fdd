const log = [];
const p = new Proxy({ a: 1 }, { get: (t, k) => (log.push(k), k in t ? t[k] : `no ${String(k)}`), set: (t, k, v) => { if (v < 0) throw new RangeError("neg"); t[k] = v; return true; }, has: () => true, deleteProperty: (t, k) => delete t[k] });
p.b = 5;
try { p.c = -1; } catch (e) { console.log(e.message); }
console.log(p.a, p.b, p.zz, "anything" in p, delete p.a, log);
