console.log("a");
process.exit(3);
console.log("b");
