const o = { name: "o" };
o.self = o;
console.log(o);
try { JSON.stringify(o); } catch (e) { console.log(e.name); }
