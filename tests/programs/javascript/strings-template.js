const items = [{ n: "tea", p: 3.5 }, { n: "bread", p: 2 }];
console.log(`${items.map(({ n, p }) => `${n.padEnd(8, ".")}${p.toFixed(2).padStart(6)}`).join("\n")}
total ${items.reduce((t, i) => t + i.p, 0)}`);
