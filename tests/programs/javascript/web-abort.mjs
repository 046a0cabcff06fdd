const c = new AbortController();
c.signal.addEventListener("abort", () => console.log("event", c.signal.aborted));
const work = new Promise((_, no) => c.signal.addEventListener("abort", () => no(c.signal.reason)));
setTimeout(() => c.abort(), 1);
try { await work; } catch (e) { console.log(e.name, e.message); }
try { AbortSignal.abort("why").throwIfAborted(); } catch (e) { console.log(e); }
console.log(AbortSignal.abort().aborted);
