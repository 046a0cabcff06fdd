class Repo {
  #rows = new Map();
  async save(row) { await null; this.#rows.set(row.id, row); return row.id; }
  async *[Symbol.asyncIterator]() { for (const r of this.#rows.values()) yield r; }
  static async make() { const r = new this(); await r.save({ id: 1 }); return r; }
}
class Sub extends Repo { async save(row) { return (await super.save({ ...row, sub: true })) * 10; } }
const repo = await Sub.make();
console.log(await repo.save({ id: 2 }));
for await (const row of repo) console.log(row);
