/**
 * Random numbers that can be had again: the runner prints a seed for all files of its run, and PATCHBAY_TEST_SEED takes
 * one. A file without a runner prints its own when it first needs it.
 */
const given = process.env.PATCHBAY_TEST_SEED;
let state: number | undefined = given === undefined ? undefined : Number(given) >>> 0;

export function newSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}

export function seedWith(seed: number): void {
  state = seed >>> 0;
}

/** From 0 to below 1, by mulberry32. */
export function random(): number {
  if (state === undefined) {
    state = newSeed();
    console.error(`PATCHBAY_TEST_SEED=${state}`);
  }
  state = (state + 0x6d2b79f5) | 0;
  let bits = Math.imul(state ^ (state >>> 15), 1 | state);
  bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
  return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
}

/** A whole number from 0 to below `end`. */
export function randomBelow(end: number): number {
  return Math.floor(random() * end);
}

export function shuffled<Value>(all: readonly Value[]): Value[] {
  const left = [...all];
  return all.map(() => left.splice(randomBelow(left.length), 1)[0]!);
}
