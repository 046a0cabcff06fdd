for await (const x of (async function* () { yield 1; yield 2; })()) console.log(x);
async function*g(){yield* [3,4]} for await(const x of g())console.log(x)
