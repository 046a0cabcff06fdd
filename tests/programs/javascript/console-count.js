console.count(); console.count("x"); console.count(); console.countReset(); console.count();
console.assert(1 === 1, "never"); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 });
