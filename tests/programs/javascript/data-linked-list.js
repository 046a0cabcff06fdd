class Node { constructor(v, next = null) { this.v = v; this.next = next; } }
const list = [3, 2, 1].reduce((n, v) => new Node(v, n), null);
console.log(list);
let [p, prev] = [list, null];
while (p) [p.next, prev, p] = [prev, p, p.next];
console.log(JSON.stringify(prev));
