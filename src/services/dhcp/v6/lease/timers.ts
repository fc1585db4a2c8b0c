/** How long a client waits before it sends a message again (RFC 8415 sections 7.6 and 15). Pure. */

export interface Timer {
  /** IRT and MRT, in seconds. */
  first: number;
  longest: number;
  /** MRC. */
  tries: number;
}

/** SOL_MAX_RT, until a server says another. */
export const LONGEST_PAUSE_S = 3600;

export const timers = {
  soliciting: { first: 1, longest: LONGEST_PAUSE_S, tries: Infinity },
  requesting: { first: 1, longest: 30, tries: 10 },
  confirming: { first: 1, longest: 4, tries: Infinity },
  renewing: { first: 10, longest: 600, tries: Infinity },
  rebinding: { first: 10, longest: 600, tries: Infinity },
  declining: { first: 1, longest: Infinity, tries: 4 },
} as const satisfies Record<string, Timer>;

export type Asking = keyof typeof timers;

/** Somebody waits for ADD: shorter than RFC 8415 section 7.6 has it. */
const LONGEST_AWAITED_PAUSE_S = 16, AWAITED_REQUEST_TRIES = 4;
const SPREAD = 0.1;

/** `longestPause`: SOL_MAX_RT, as servers say it. */
export function timerOf(state: Asking, longestPause: number, isAwaited: boolean): Timer {
  const timer: Timer = timers[state], longest = state === "soliciting" ? longestPause : timer.longest;
  if (!isAwaited) return { ...timer, longest };
  const tries = state === "requesting" ? AWAITED_REQUEST_TRIES : timer.tries;
  return { ...timer, longest: Math.min(longest, LONGEST_AWAITED_PAUSE_S), tries };
}

/** RT after `before`, which is 0 at first. `random` is from 0 to less than 1. `grows`: the first is only lengthened. */
export function nextPause(before: number, { first, longest }: Timer, random: number, grows: boolean): number {
  const spread = before === 0 && grows ? SPREAD * (1 - random) : SPREAD * (2 * random - 1);
  const pause = before === 0 ? first * (1 + spread) : before * (2 + spread);
  return pause > longest ? longest * (1 + spread) : pause;
}
