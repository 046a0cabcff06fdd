console.log(await { then(ok) { ok("thenable"); } }, await 5, await null);
const { promise, resolve } = (() => { let resolve; const promise = new Promise((r) => (resolve = r)); return { promise, resolve }; })();
setTimeout(resolve, 1, "deferred");
console.log(await promise, Promise.resolve(1), Promise.reject(2).catch(() => {}) instanceof Promise);
