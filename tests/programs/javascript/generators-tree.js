const tree = { v: 1, kids: [{ v: 2, kids: [{ v: 3 }] }, { v: 4 }] };
function* walk(t, depth = 0) { yield "-".repeat(depth) + t.v; for (const k of t.kids ?? []) yield* walk(k, depth + 1); }
for (const line of walk(tree)) console.log(line);
