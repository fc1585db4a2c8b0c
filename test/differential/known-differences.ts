/**
 * Where we differ from the Go plugins on purpose. Each has its reason in docs/quirks.md under the same name, and
 * explains the differing lines it matches: `-` is Go's, `+` is ours.
 */
export interface KnownDifference {
  lines: RegExp[];
  /** Explains lines in every case; otherwise only in the cases that name it. */
  anywhere?: true;
}

export const knownDifferences: Record<string, KnownDifference> = {};
