class Queue { #in = []; #out = []; push(x) { this.#in.push(x); } pop() { if (!this.#out.length) while (this.#in.length) this.#out.push(this.#in.pop()); return this.#out.pop(); } }
const q = new Queue();
[1, 2, 3].forEach((x) => q.push(x));
console.log(q.pop(), q.pop(), (q.push(9), q.pop()), q.pop(), q.pop());
