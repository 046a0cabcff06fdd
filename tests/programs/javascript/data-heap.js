class Heap { a = []; push(v) { this.a.push(v); for (let i = this.a.length - 1, p; i && this.a[p = (i - 1) >> 1] > this.a[i]; i = p) [this.a[i], this.a[p]] = [this.a[p], this.a[i]]; } pop() { const t = this.a[0], l = this.a.pop(); if (this.a.length) { this.a[0] = l; for (let i = 0, c; (c = 2 * i + 1) < this.a.length; i = c) { if (this.a[c + 1] < this.a[c]) c++; if (this.a[i] <= this.a[c]) break; [this.a[i], this.a[c]] = [this.a[c], this.a[i]]; } } return t; } }
const h = new Heap();
[5, 3, 8, 1, 9, 2].forEach((x) => h.push(x));
console.log(Array.from({ length: 6 }, () => h.pop()));
