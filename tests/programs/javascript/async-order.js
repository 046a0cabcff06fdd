console.log(1);
setTimeout(() => console.log(8), 0);
setImmediate(() => console.log(9));
Promise.resolve().then(() => console.log(5)).then(() => console.log(7));
process.nextTick(() => console.log(4));
queueMicrotask(() => console.log(6));
(async () => { console.log(2); await null; console.log("6b"); })();
console.log(3);
