const words = ["apple", "bob", "cat", "avocado", "banana"];
const groups = words.reduce((acc, w) => ({ ...acc, [w[0]]: [...(acc[w[0]] ?? []), w] }), {});
console.log(groups);
