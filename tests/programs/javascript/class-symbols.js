class Range {
  constructor(a, b) { Object.assign(this, { a, b }); }
  *[Symbol.iterator]() { for (let i = this.a; i <= this.b; i++) yield i; }
  get [Symbol.toStringTag]() { return "Range"; }
  [Symbol.toPrimitive](hint) { return hint === "number" ? this.b - this.a : "range"; }
}
const r = new Range(2, 5);
console.log([...r], `${r}`, +r, String(Object.prototype.toString.call(r)));
