const isLeap = (y) => new Date(Date.UTC(y, 1, 29)).getUTCMonth() === 1;
console.log([1900, 2000, 2023, 2024].map(isLeap));
const ages = ["2000-02-29", "1999-12-31"].map((b) => { const [n, d] = [new Date("2024-02-28"), new Date(b)]; let a = n.getUTCFullYear() - d.getUTCFullYear(); if (n < new Date(Date.UTC(n.getUTCFullYear(), d.getUTCMonth(), d.getUTCDate()))) a--; return a; });
console.log(ages);
