const sleep = (ms, v) => new Promise((r) => setTimeout(() => { console.log("done", v); r(v); }, ms));
console.log(await Promise.all([sleep(9, "a"), sleep(1, "b"), "c"]));
console.log(await Promise.race([sleep(9, "x"), sleep(1, "y")]));
console.log(await Promise.allSettled([1, Promise.reject(new Error("no").message)]));
