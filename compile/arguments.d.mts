import type { parseArgs, ParseArgsOptionDescriptor } from "node:util";

interface Option extends ParseArgsOptionDescriptor {
  /** What usage calls its value: `FILE`. */
  value?: string;
  /** What it does. An option without is not for people. */
  about?: string;
}

export type Options = Record<string, Option>;

/** What usage says of a tool. */
export interface Usage<Known extends Options = Options> {
  name: string;
  about: string;
  options?: Known;
  /** What the words without a dash are: `[PATH…]`. Without it there are none. */
  words?: string;
  /** How a person calls it, unless it is `npm run NAME`. */
  call?: string;
}

export type Arguments<Known extends Options = Options> = ReturnType<
  typeof parseArgs<{ options: Known; allowPositionals: true }>
>;

export class Refused extends Error {}

export function readArguments<Known extends Options>(
  tool: Usage<Known>,
  argv: readonly string[],
): Arguments<Known> | undefined;
export function usage(tool: Usage): string;
export function orRefuse(tool: Usage, work: () => number | void | Promise<number | void>): Promise<number>;
