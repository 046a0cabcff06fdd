async function pool(tasks, limit) {
  const results = []; let next = 0, active = 0, peak = 0;
  await Promise.all(Array.from({ length: limit }, async () => {
    while (next < tasks.length) { const i = next++; peak = Math.max(peak, ++active); results[i] = await tasks[i](); active--; }
  }));
  return { results, peak };
}
console.log(await pool([5, 1, 3, 2].map((ms) => () => new Promise((r) => setTimeout(r, ms, ms * 2))), 2));
