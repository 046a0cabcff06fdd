const f = () => { try { return "try"; } finally { console.log("finally"); } };
const g = () => { for (const x of [1, 2, 3]) { try { if (x === 2) continue; console.log(x); } finally { console.log("f" + x); } } };
console.log(f()); g();
