console.table([{ id: 1, name: "Ann" }, { id: 2, name: "Bob", extra: true }]);
console.table([[1, 2], [3, 4]]);
console.table(["a", "b"]);
console.table(new Map([["k", 1]]));
console.table(5);
