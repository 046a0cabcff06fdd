const deep = (n) => deep(n + 1) + 1;
try { deep(0); } catch (e) { console.log(e instanceof RangeError, e.message); }
console.log("alive");
