const o = { a: { b: null }, f: () => 5 };
console.log(o?.a?.b?.c, o.x?.y.z, o.f?.(), o.g?.(), 0 || "d", 0 ?? "d", null ?? "d", "" && 1);
let v = null; v ??= 4; v &&= v + 1; v ||= 9;
console.log(v, !!"0", [] == false, null == undefined, NaN === NaN, Object.is(-0, 0), typeof null);
