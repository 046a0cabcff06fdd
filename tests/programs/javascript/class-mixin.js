const Serial = (Base) => class extends Base { toJSON() { return { ...this, kind: "serial" }; } };
class Item { id = 1; }
console.log(JSON.stringify(new (Serial(Item))()));
