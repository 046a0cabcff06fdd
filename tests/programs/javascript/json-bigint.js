try { JSON.stringify({ n: 1n }); } catch (e) { console.log(e.name, e.message); }
console.log(JSON.stringify({ n: 1n }, (k, v) => (typeof v === "bigint" ? v.toString() : v)));
