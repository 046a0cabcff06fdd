class InsufficientFunds extends Error { constructor(need) { super(`need ${need} more`); this.name = this.constructor.name; this.need = need; } }
class Account { constructor(b) { this.b = b; } take(n) { if (n > this.b) throw new InsufficientFunds(n - this.b); this.b -= n; return this; } }
try { new Account(10).take(3).take(9); } catch (e) { console.log(`${e}`, e.need, e instanceof InsufficientFunds); }
