const fail = async () => { throw new Error("inner"); };
try { await fail(); } catch (e) { console.log("caught", e.message); }
await fail().catch((e) => console.log("catch", e.message));
console.log(await Promise.reject(1).then(() => 2, (x) => x + 10));
