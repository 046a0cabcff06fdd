const o = {};
Object.defineProperty(o, "hidden", { value: 1, enumerable: false });
Object.defineProperty(o, "calc", { get: () => 42, enumerable: true });
console.log(o, o.hidden, o.calc, JSON.stringify(o), Object.getOwnPropertyNames(o));
