// A generator for `Math.random`: the engine's own has the seed of the build in it, so without this one
// all calls would see one sequence. It is sfc32, and fit for no secret.

/** Numbers from 0 up to 1, 53 bits each, from a seed of 16 bytes. */
export function makeRandom(seed) {
  const words = new Uint32Array(seed.buffer.slice(seed.byteOffset, seed.byteOffset + 16));
  let [a, b, c, counter] = words;
  const next = () => {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  };
  // The first numbers still look like the seed.
  for (let round = 0; round < 12; round += 1) next();
  return function random() {
    return ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
  };
}
