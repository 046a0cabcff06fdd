const s = Symbol("desc"), t = Symbol.for("shared");
console.log(s.toString(), s.description, Symbol.keyFor(t), Symbol.for("shared") === t, typeof s, { [s]: 1 });
