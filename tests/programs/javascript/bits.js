console.log(5 & 3, 5 | 3, 5 ^ 3, ~5, 1 << 31, -1 >>> 0, -9 >> 1, (0xdeadbeef >>> 0).toString(16), Math.clz32(1));
