function f(a, b = a + 1, { c = 3, ...d } = {}, [e = 9] = [], ...rest) { return [a, b, c, d, e, rest]; }
console.log(f(1), f(1, 2, { c: 5, z: 6 }, [7], 8, 9), f.length, f.name);
