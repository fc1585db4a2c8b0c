/** One call of netavark, after its arguments were read. */
import type { Surroundings } from "./surroundings.ts";

export interface Call {
  readonly surroundings: Surroundings;
  /** The word after the subcommand, where it takes one. */
  readonly operand: string;
  /** Of the subcommand's own option. */
  readonly values: readonly string[];
  /** Of an option that need not be given. */
  optional(name: string): string | undefined;
  readonly hasFile: boolean;
  /** stdin, or the file of `--file`. */
  readInput(): Uint8Array;
}
