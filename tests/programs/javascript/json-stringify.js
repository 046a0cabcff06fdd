console.log(JSON.stringify({ a: [1, "x", null, undefined, () => 1], d: new Date(0), n: NaN, u: undefined, nested: { t: true } }));
console.log(JSON.stringify([{ a: 1 }, []], null, 2));
console.log(JSON.stringify({ a: 1, b: 2, c: { a: 3 } }, ["a", "c"]), JSON.stringify("é\u2028\ud800"), JSON.stringify({ k: 5 }, (k, v) => typeof v === "number" ? v + 1 : v, "--"));
