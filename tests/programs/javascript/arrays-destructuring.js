const [x, , y = 7, ...rest] = [1, 2, undefined, 4, 5];
console.log(x, y, rest);
let p = 1, q = 2;
[p, q] = [q, p];
console.log(p, q);
