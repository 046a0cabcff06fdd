console.log(parseInt("42px"), parseFloat("3.14abc"), Number(""), Number("0x1f"), Number("1e3"), Number(null), +true, +[], +{});
console.log((255).toString(16), (0.5).toString(2), parseInt("zz", 36), (1e-7).toString(), (123.456).toPrecision(4), (12345.678).toExponential(2));
console.log(Number.MAX_SAFE_INTEGER, Number.EPSILON > 0, Number.isInteger(5.0), 0xff, 0b11, 0o17, 1_000_000, 9007199254740993);
