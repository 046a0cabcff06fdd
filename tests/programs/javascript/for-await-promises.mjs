const delay = (ms, v) => new Promise((r) => setTimeout(r, ms, v));
for await (const v of [delay(5, "a"), delay(1, "b"), "c"]) console.log(v);
