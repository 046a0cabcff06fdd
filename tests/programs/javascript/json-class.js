class Money { constructor(c) { this.c = c; } toJSON() { return `$${(this.c / 100).toFixed(2)}`; } }
console.log(JSON.stringify({ price: new Money(1999), map: [...new Map([["k", new Money(5)]])] }));
