const a = ["a", "b", "c", "d"];
console.log(a.splice(1, 2, "X", "Y", "Z"), a, a.slice(-2), a.fill("f", 3), a.copyWithin(0, 3));
