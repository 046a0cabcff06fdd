console.log(Math.max(), Math.min(1, -2), Math.round(-0.5), Math.round(2.5), Math.trunc(-4.7), Math.sign(-3), Math.cbrt(27), Math.hypot(3, 4));
console.log(0.1 + 0.2, (0.1 + 0.2).toFixed(2), (1234.5678).toFixed(1), 1e21, 1 / 3, -1 / 0, 5 % -3, -5 % 3, 2 ** 10, 2 ** -1);
