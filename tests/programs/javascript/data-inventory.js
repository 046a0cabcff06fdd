const stock = [["tea", 5, 2.5], ["jam", 0, 4], ["nut", 12, 1.25]].map(([name, count, price]) => ({ name, count, price }));
const worth = stock.map((s) => ({ ...s, worth: s.count * s.price })).filter((s) => s.worth > 0).sort((a, b) => b.worth - a.worth);
console.log(worth, worth.reduce((t, { worth: w }) => t + w, 0));
