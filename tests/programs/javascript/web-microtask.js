queueMicrotask(() => console.log("micro"));
setTimeout(() => console.log("timer"), 0);
console.log("sync", typeof performance.now(), performance.now() >= 0);
