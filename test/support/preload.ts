/** Before each test file: the seed of the run is that of the property tests, too. They print their own without one. */
export {};

const seed = process.env.PATCHBAY_TEST_SEED;
if (seed !== undefined) (await import("fast-check")).default.configureGlobal({ seed: Number(seed) | 0 });
