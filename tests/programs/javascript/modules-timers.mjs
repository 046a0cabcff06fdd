import { setTimeout as sleep } from "node:timers/promises";
console.log(await sleep(2, "slept"));
const t = setTimeout(() => console.log("never"), 1000);
clearTimeout(t);
