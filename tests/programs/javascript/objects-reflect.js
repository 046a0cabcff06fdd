console.log(Reflect.ownKeys({ b: 1, [Symbol.iterator]: 2, 1: 1 }), Reflect.has({ x: 1 }, "x"), Reflect.construct(Date, [0]).getTime(), Reflect.apply(Math.max, null, [1, 5]));
