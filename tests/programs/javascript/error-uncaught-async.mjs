console.log("before");
setTimeout(() => console.log("never"), 50);
await Promise.reject(new Error("late"));
