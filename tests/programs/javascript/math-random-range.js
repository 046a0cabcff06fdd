const r = Array.from({ length: 1000 }, () => Math.floor(Math.random() * 6) + 1);
console.log(Math.min(...r), Math.max(...r), r.every(Number.isInteger));
