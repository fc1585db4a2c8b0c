/**
 * A share of a long table of cases. The run of all files takes every eighth, the long run the others, and a run of a file
 * by its path all of them.
 */
const ONE_IN = 8;
const share = process.env.PATCHBAY_TEST_SHARE;

export const isShared = share !== undefined;
/** In the run of all files. */
export const isShortRun = share === "some";

/** `isSkipped` are those that this kernel lacks something for: the long run has them all. */
export function ownShare<T>(all: readonly T[], isSkipped: (one: T) => boolean = () => false): T[] {
  if (!isShared) return [...all];
  const isShort = (one: T, index: number) => index % ONE_IN === 0 && !isSkipped(one);
  return all.filter((one, index) => isShort(one, index) === (share === "some"));
}
