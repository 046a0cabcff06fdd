import readline from "node:readline";
const rl = readline.createInterface({ input: process.stdin });
rl.on("line", (l) => console.log("line", l)).on("close", () => console.log("closed"));
