/** The program behind names.ts, run inside a machine: writes and removes names as setup and teardown do. */
import { addNames, removeNames } from "../../../src/resources/netavark/aardvark-names/names.ts";
import type { NamesStep } from "./names.ts";

const steps: NamesStep[] = await Bun.stdin.json();
const outcomes = steps.map(({ verb, spec }) => {
  try {
    return verb === "add" ? addNames(spec) : removeNames(spec) ?? "removed";
  } catch (error) {
    return (error as Error).message;
  }
});
console.log(JSON.stringify(outcomes));
