const t = new Uint8Array([1, 2, 300]);
console.log(t, new Float32Array([1.5, 2]), Int16Array.from([1, 2, 3]).map((v) => v * 1000));
const view = new DataView(new ArrayBuffer(8));
view.setInt32(0, -5);
view.setFloat32(4, 0.1, true);
console.log(view.getInt32(0), view.getUint8(3), view.getFloat32(4, true));
