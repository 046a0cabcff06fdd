function* g() { const x = yield 1; console.log("got", x); try { yield 2; } finally { console.log("cleanup"); } return 3; }
const it = g();
console.log(it.next(), it.next("v"), it.return(8), it.next());
