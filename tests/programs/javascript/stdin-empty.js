const text = require("fs").readFileSync(0, "utf8");
console.log(JSON.stringify(text));
process.stdin.on("data", (d) => console.log("data", d)).on("end", () => console.log("end"));
