Promise.reject(new Error("nobody"));
setTimeout(() => console.log("not reached"), 10);
console.log("sync");
