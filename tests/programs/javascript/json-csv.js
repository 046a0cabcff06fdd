const csv = 'name,age\n"Smith, A",31\nBob,25\n';
const rows = csv.trim().split("\n").map((l) => [...l.matchAll(/("([^"]*)"|[^,]+)(,|$)/g)].map((m) => m[2] ?? m[1]));
const [head, ...body] = rows;
console.log(JSON.stringify(body.map((r) => Object.fromEntries(r.map((v, i) => [head[i], isNaN(v) ? v : +v])))));
