/**
 * The arguments of the tools in this checkout. `--help` prints what a tool takes. What it does not take is refused in
 * one line with exit status 2, before any work. Runs on plain Node.js, as compile/setup.mjs does.
 */
import { parseArgs } from "node:util";

/** Arguments that cannot be carried out. */
export class Refused extends Error {}

/** The options and words, or undefined when usage is asked for. */
export function readArguments({ options = {}, words }, argv) {
  try {
    const known = { ...options, help: { type: "boolean", short: "h" } };
    const read = parseArgs({ args: [...argv], options: known, allowPositionals: words !== undefined });
    return read.values.help ? undefined : read;
  } catch (error) {
    if (!String(error.code).startsWith("ERR_PARSE_ARGS")) throw error;
    throw new Refused(`${error.message.split(/\n|\. /)[0]}; --help says what there is`);
  }
}

export function usage({ name, about, options = {}, words, call = `npm run ${name}` }) {
  const shown = Object.entries(options).filter(([, { about }]) => about !== undefined).map(([long, option]) => [
    `${option.short === undefined ? "" : `-${option.short}, `}--${long}${option.value ? ` ${option.value}` : ""}`,
    option.about,
  ]);
  const width = Math.max(0, ...shown.map(([left]) => left.length));
  const after = [shown.length > 0 ? "[OPTION…]" : [], words ?? []].flat().join(" ");
  return [
    `${call}${after === "" ? "" : ` -- ${after}`}`,
    "",
    about,
    ...shown.length > 0 ? [""] : [],
    ...shown.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
  ].join("\n");
}

/** Runs `work` and returns its exit status. `Refused` becomes one line. */
export async function orRefuse({ name }, work) {
  try {
    return (await work()) ?? 0;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(`${name}: ${error.message}`);
    return 2;
  }
}
