console.log([10, 9, 1, 100].sort(), [10, 9, 1, 100].sort((a, b) => a - b), ["b", undefined, "a"].sort());
const stable = [["x", 1], ["y", 0], ["z", 1], ["w", 0]].sort((a, b) => a[1] - b[1]);
console.log(stable.map((s) => s[0]).join(""));
