import { promisify, inspect } from "node:util";
const add = promisify((a, b, cb) => setTimeout(() => (b ? cb(null, a + b) : cb(new Error("no b"))), 1));
console.log(await add(1, 2), await add(1).catch((e) => e.message));
class Temp { constructor(c) { this.c = c; } [inspect.custom]() { return `Temp<${this.c}>`; } }
console.log(new Temp(5), [new Temp(6)], { t: new Temp(7) });
