const start = new Date("2024-01-31T00:00:00Z");
const days = (n) => new Date(start.getTime() + n * 864e5).toISOString().slice(0, 10);
console.log([0, 1, 29, 30, 366].map(days));
start.setUTCMonth(1);
console.log(start.toISOString());
