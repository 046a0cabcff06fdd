const wrap = (t, n) => t.split(" ").reduce((ls, w) => (ls.at(-1).length + w.length < n ? ls[ls.length - 1] += (ls.at(-1) && " ") + w : ls.push(w), ls), [""]);
console.log(wrap("the quick brown fox jumps over the lazy dog and runs away", 15).join("\n"));
