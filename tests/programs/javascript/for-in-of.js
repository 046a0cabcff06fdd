const o = { b: 1, a: 2, 3: 4, 1: 2 };
for (const k in o) console.log(k, o[k]);
for (const [i, ch] of [..."hé👍"].entries()) console.log(i, ch);
