process.exitCode = 4;
process.on("exit", (code) => console.log("exit", code));
console.log("last");
