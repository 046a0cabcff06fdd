const counter = () => { let n = 0; return { up: () => ++n, down: () => --n }; };
const [one, two] = [counter(), counter()];
one.up(); one.up(); two.down();
console.log(one.up(), two.down());
var fs = [];
for (let i = 0; i < 3; i++) fs.push(() => i);
console.log(fs.map((f) => f()));
