const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
async function main() { console.log("a"); await sleep(2); console.log("b"); return "c"; }
main().then(console.log).finally(() => console.log("done"));
console.log("sync");
