const kind = (x) => { switch (typeof x) { case "number": return x > 0 ? "pos" : "neg"; case "string": case "boolean": return "prim"; default: return "other"; } };
console.log([1, -1, "a", true, {}].map(kind));
label: for (let i = 0; i < 3; i++) { for (let j = 0; j < 3; j++) { if (j === 1) continue label; if (i === 2) break label; console.log(i, j); } }
