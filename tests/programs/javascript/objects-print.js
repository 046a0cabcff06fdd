console.log({ a: "x".repeat(60), b: [1, 2, 3], c: { d: "y".repeat(30) } });
console.log([[[[1]]]], [{}], [undefined, null, -0], [1.5, "a", true, 5n, Symbol("q")], { f: function named() {}, c: class K {} });
console.log([["a", "b"], ["c", "d"]], new Error("shown").message, [new Date(0)], [/x/g], "top 'quoted'", ["it's"]);
