const list = [5, 12, 8, 130, 44];
console.log(list.find((x) => x > 10), list.findIndex((x) => x > 10), list.findLast((x) => x > 10), list.at(-1));
console.log(list.includes(8), list.indexOf(7), [NaN].includes(NaN), [NaN].indexOf(NaN));
