setTimeout(() => { throw new Error("x"); }, 1);
setTimeout(() => console.log("never"), 20);
console.log("first");
