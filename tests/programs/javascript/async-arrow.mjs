const double = async (x) => x * 2, obj = { async m() { return this.k; }, k: 4, async*g() { yield this.k } };
console.log(await Promise.all([1, 2].map(async (x) => (await double(x)) + 1)), await obj.m());
for await (const k of obj.g()) console.log(k);
console.log(await (async () => ({ a: [await double(4)] }))());
