class Account {
  #balance = 0;
  static #count = 0;
  constructor() { Account.#count++; }
  deposit(n) { this.#balance += n; return this; }
  get balance() { return this.#balance; }
  static get count() { return Account.#count; }
  has(o) { return #balance in o; }
}
const acc = new Account().deposit(5).deposit(7);
console.log(acc.balance, Account.count, acc, acc.has({}), acc.has(acc));
