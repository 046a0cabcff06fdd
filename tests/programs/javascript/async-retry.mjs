let tries = 0;
const flaky = async () => { if (++tries < 3) throw new Error("try " + tries); return "ok after " + tries; };
async function retry(f, n) { for (let i = 1; ; i++) { try { return await f(); } catch (e) { console.log(e.message); if (i >= n) throw e; } } }
console.log(await retry(flaky, 5));
