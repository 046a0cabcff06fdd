const holes = [1, , 3];
console.log(holes, holes.length, 1 in holes, holes.map((v) => v * 2), Object.keys(holes));
console.log([...holes], Array.from({ length: 3 }, (_, i) => i * i), Array(3), Array.of(7));
