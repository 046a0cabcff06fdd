const path = require("path"), util = require("util"), { EventEmitter } = require("events");
console.log(path.extname("a/b.test.js"), path.resolve("/a", "../b"), path.relative("/a/b/c", "/a/d"), path.parse("/home/u/f.txt"));
console.log(util.inspect({ a: { b: { c: {} } } }, { depth: 0 }), util.isDeepStrictEqual([1, { a: 2 }], [1, { a: 2 }]), util.types.isDate(new Date()));
const e = new EventEmitter();
e.once("x", (v) => console.log("once", v));
e.on("x", (v) => console.log("on", v));
console.log(e.emit("x", 1), e.emit("x", 2), e.emit("y"), e.listenerCount("x"));
