process.on("exit", () => { process.exitCode = 9; });
console.log("x");
