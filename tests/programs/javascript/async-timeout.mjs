const timeout = (p, ms) => Promise.race([p, new Promise((_, no) => setTimeout(() => no(new Error("timeout")), ms))]);
console.log(await timeout(new Promise((r) => setTimeout(r, 100, "slow")), 5).catch((e) => e.message));
