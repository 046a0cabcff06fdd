// Digests: SHA-1, SHA-2 and MD5, for `crypto.subtle.digest` and for `createHash` of `require("crypto")`.
//
// Plain JavaScript, and so slow beside native code: about a megabyte a second. MD5 and SHA-1 are for comparing files
// with sums that others made, and not for secrets.

const INITIAL = {
  md5: [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476],
  sha1: [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0],
};

const PRIMES = primes(80);
/** The first 32 bits, and the first 64, of the fractions of roots of primes. */
const ROUNDS_32 = PRIMES.slice(0, 64).map((prime) => Number(fraction(prime, 3n) >> 32n));
const ROUNDS_64 = PRIMES.map((prime) => fraction(prime, 3n));
const START_256 = PRIMES.slice(0, 8).map((prime) => Number(fraction(prime, 2n) >> 32n));
const START_512 = PRIMES.slice(0, 8).map((prime) => fraction(prime, 2n));
const START_384 = PRIMES.slice(8, 16).map((prime) => fraction(prime, 2n));
const START_224 = START_384.map((word) => Number(word & 0xffff_ffffn));
const MASK = 0xffff_ffff_ffff_ffffn;

const SINES = Array.from({ length: 64 }, (_, at) => Math.floor(Math.abs(Math.sin(at + 1)) * 2 ** 32) >>> 0);
const TURNS = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/** The algorithms: a name such as `sha256` and what makes a digest of bytes. */
export const DIGESTS = {
  md5,
  sha1,
  sha224: (bytes) => sha2(bytes, START_224, 28),
  sha256: (bytes) => sha2(bytes, START_256, 32),
  sha384: (bytes) => sha2Wide(bytes, START_384, 48),
  sha512: (bytes) => sha2Wide(bytes, START_512, 64),
};

/** Bytes of a block, which HMAC pads its key to. */
export function blockBytes(name) {
  return name === "sha384" || name === "sha512" ? 128 : 64;
}

function primes(count) {
  const found = [];
  for (let number = 2; found.length < count; number += 1) {
    if (found.every((prime) => number % prime !== 0)) found.push(number);
  }
  return found;
}

/** 64 bits of the fraction of the root of `prime`. */
function fraction(prime, degree) {
  const wanted = BigInt(prime) << (64n * degree);
  let low = 0n;
  let high = 1n << 70n;
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** degree <= wanted) low = middle;
    else high = middle;
  }
  return low & 0xffff_ffff_ffff_ffffn;
}

/** `bytes`, a one, zeros, and the length in bits. */
function padded(bytes, block, isLittle = false) {
  const lengthBytes = block / 8;
  const whole = Math.ceil((bytes.length + 1 + lengthBytes) / block) * block;
  const view = new DataView(new ArrayBuffer(whole));
  new Uint8Array(view.buffer).set(bytes);
  view.setUint8(bytes.length, 0x80);
  const [high, low] = [Math.floor(bytes.length / 2 ** 29), (bytes.length << 3) >>> 0];
  view.setUint32(whole - 8, isLittle ? low : high, isLittle);
  view.setUint32(whole - 4, isLittle ? high : low, isLittle);
  return view;
}

function rotate(word, by) {
  return (word << by) | (word >>> (32 - by));
}

function written(words, bytes, isLittle = false) {
  const view = new DataView(new ArrayBuffer(words.length * 4));
  words.forEach((word, at) => view.setUint32(at * 4, word, isLittle));
  return new Uint8Array(view.buffer, 0, bytes);
}

function md5(bytes) {
  const view = padded(bytes, 64, true);
  const state = [...INITIAL.md5];
  for (let block = 0; block < view.byteLength; block += 64) {
    let [a, b, c, d] = state;
    for (let at = 0; at < 64; at += 1) {
      const round = at >> 4;
      const mixed = [(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)][round];
      const word = [at, 5 * at + 1, 3 * at + 5, 7 * at][round] % 16;
      const sum = (a + mixed + SINES[at] + view.getUint32(block + word * 4, true)) | 0;
      [a, d, c, b] = [d, c, b, (b + rotate(sum, TURNS[round][at % 4])) | 0];
    }
    [a, b, c, d].forEach((word, at) => (state[at] = (state[at] + word) | 0));
  }
  return written(state, 16, true);
}

function sha1(bytes) {
  const view = padded(bytes, 64);
  const state = [...INITIAL.sha1];
  const words = new Int32Array(80);
  for (let block = 0; block < view.byteLength; block += 64) {
    for (let at = 0; at < 16; at += 1) words[at] = view.getInt32(block + at * 4);
    for (let at = 16; at < 80; at += 1) words[at] = rotate(words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16], 1);
    let [a, b, c, d, e] = state;
    for (let at = 0; at < 80; at += 1) {
      const mixed = at < 20 ? (b & c) | (~b & d) : at >= 40 && at < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
      const constant = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6][Math.floor(at / 20)];
      const sum = (rotate(a, 5) + mixed + e + constant + words[at]) | 0;
      [e, d, c, b, a] = [d, c, rotate(b, 30), a, sum];
    }
    [a, b, c, d, e].forEach((word, at) => (state[at] = (state[at] + word) | 0));
  }
  return written(state, 20);
}

function sha2(bytes, start, length) {
  const view = padded(bytes, 64);
  const state = [...start];
  const words = new Int32Array(64);
  for (let block = 0; block < view.byteLength; block += 64) {
    for (let at = 0; at < 16; at += 1) words[at] = view.getInt32(block + at * 4);
    for (let at = 16; at < 64; at += 1) {
      const [one, two] = [words[at - 15], words[at - 2]];
      const low = rotate(one, 25) ^ rotate(one, 14) ^ (one >>> 3);
      const high = rotate(two, 15) ^ rotate(two, 13) ^ (two >>> 10);
      words[at] = (words[at - 16] + low + words[at - 7] + high) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let at = 0; at < 64; at += 1) {
      const one = rotate(e, 26) ^ rotate(e, 21) ^ rotate(e, 7);
      const first = (h + one + ((e & f) ^ (~e & g)) + ROUNDS_32[at] + words[at]) | 0;
      const two = rotate(a, 30) ^ rotate(a, 19) ^ rotate(a, 10);
      const second = (two + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] = (state[at] + word) | 0));
  }
  return written(state, length);
}

function rotateWide(word, by) {
  return ((word >> by) | (word << (64n - by))) & MASK;
}

function sha2Wide(bytes, start, length) {
  const view = padded(bytes, 128);
  const state = [...start];
  const words = new Array(80);
  for (let block = 0; block < view.byteLength; block += 128) {
    for (let at = 0; at < 16; at += 1) words[at] = view.getBigUint64(block + at * 8);
    for (let at = 16; at < 80; at += 1) {
      const [one, two] = [words[at - 15], words[at - 2]];
      const low = rotateWide(one, 1n) ^ rotateWide(one, 8n) ^ (one >> 7n);
      const high = rotateWide(two, 19n) ^ rotateWide(two, 61n) ^ (two >> 6n);
      words[at] = (words[at - 16] + low + words[at - 7] + high) & MASK;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let at = 0; at < 80; at += 1) {
      const one = rotateWide(e, 14n) ^ rotateWide(e, 18n) ^ rotateWide(e, 41n);
      const first = h + one + ((e & f) ^ (~e & MASK & g)) + ROUNDS_64[at] + words[at];
      const second = (rotateWide(a, 28n) ^ rotateWide(a, 34n) ^ rotateWide(a, 39n)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) & MASK, c, b, a, (first + second) & MASK];
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => (state[at] = (state[at] + word) & MASK));
  }
  const out = new DataView(new ArrayBuffer(64));
  state.forEach((word, at) => out.setBigUint64(at * 8, word));
  return new Uint8Array(out.buffer, 0, length);
}
