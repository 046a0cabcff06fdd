// A generator for `Math.random`, whose seed the engine would otherwise carry from the build: without this one
// all calls would see one sequence. It is sfc32, and fit for no secret.

/** `next` gives numbers from 0 up to 1, 53 bits each, that follow from the 16 bytes of `seed`. */
export function makeRandom() {
  let a = 0;
  let b = 0;
  let c = 0;
  let counter = 0;
  const word = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  return {
    seed(bytes) {
      [a, b, c, counter] = new Int32Array(bytes.slice(0, 16).buffer);
      // The first words still look like the seed.
      for (let round = 0; round < 12; round += 1) word();
    },
    next: function random() {
      return ((word() >>> 5) * 2 ** 26 + (word() >>> 6)) / 2 ** 53;
    },
  };
}
