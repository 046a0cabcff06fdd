async function* pages() { for (let p = 1; p <= 3; p++) { await null; yield { p, items: [p * 10] }; } }
const all = [];
for await (const { items } of pages()) all.push(...items);
console.log(all, Object.prototype.toString.call(pages()));
