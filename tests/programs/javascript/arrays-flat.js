console.log([1, [2, [3, [4]]]].flat(), [1, [2, [3, [4]]]].flat(Infinity));
console.log([1, 2, 3].flatMap((x) => [x, x * 2]));
