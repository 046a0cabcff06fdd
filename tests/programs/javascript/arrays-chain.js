const people = [{ n: "Ann", a: 31 }, { n: "Bob", a: 25 }, { n: "Cy", a: 42 }];
console.log(people.filter((p) => p.a > 30).map((p) => p.n.toUpperCase()).join(", "));
console.log(people.reduce((sum, p) => sum + p.a, 0) / people.length);
console.log(people.toSorted?.((a, b) => a.a - b.a).map((p) => p.n));
