const permute = (l) => l.length < 2 ? [l] : l.flatMap((x, i) => permute([...l.slice(0, i), ...l.slice(i + 1)]).map((r) => [x, ...r]));
console.log(permute(["a", "b", "c"]).map((p) => p.join("")).join(), permute([1, 2, 3, 4, 5]).length);
