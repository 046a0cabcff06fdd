async function* naturals() { try { let n = 0; for (;;) yield n++; } finally { console.log("closed"); } }
outer: for await (const n of naturals()) { for (const m of [1, 2]) { if (n === 3) break outer; if (m === 2) continue outer; console.log(n, m); } }
