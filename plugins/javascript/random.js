// A generator for `Math.random`: the engine's own has the seed of the build in it, so without this one
// all calls would see one sequence. It is sfc32, and fit for no secret.

/**
 * `next` gives numbers from 0 up to 1, 53 bits each, that follow from the 16 bytes that `draw` gives: asked for with the
 * first number, and anew after `forget`. Most sources want no number.
 */
export function makeRandom(draw) {
  let a = 0;
  let b = 0;
  let c = 0;
  let counter = 0;
  let isSeeded = false;
  const word = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  const seed = (bytes) => {
    [a, b, c, counter] = new Int32Array(bytes.slice(0, 16).buffer);
    // The first words still look like the seed.
    for (let round = 0; round < 12; round += 1) word();
    isSeeded = true;
  };
  return {
    forget() {
      isSeeded = false;
    },
    next: function random() {
      if (!isSeeded) seed(draw());
      return ((word() >>> 5) * 2 ** 26 + (word() >>> 6)) / 2 ** 53;
    },
  };
}
