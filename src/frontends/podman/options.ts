/** The options of a podman network whose driver is this program: they say which CNI network it is. All values are text. */
import { closestKey } from "../../cni/spelling.ts";

export interface DriverOptions {
  /** The name of a network in the configuration directory. */
  readonly conflist: string | undefined;
  /** Published ports belong to another network of the container. */
  readonly ignoresPorts: boolean;
}

/** `pluginPath` counts for clean-up, too, where nothing is refused: `runtimeFor` reads it. */
const KNOWN = ["conflist", "pluginPath", "ports"];

export function readDriverOptions(given: Readonly<Record<string, string>> = {}): DriverOptions {
  const { conflist, ports } = given;
  const unknown = Object.keys(given).find((option) => !KNOWN.includes(option));
  if (unknown !== undefined) throw unknownOption(unknown, given[unknown]!);
  if (ports !== undefined && ports !== "ignore") throw refused("ports", ports, 'the only value is "ignore"');
  return { conflist, ignoresPorts: ports !== undefined };
}

export function refused(option: string, value: string, reason: string): Error {
  return new Error(`option ${option}=${value}: ${reason}`);
}

function unknownOption(option: string, value: string): Error {
  const meant = closestKey(option, KNOWN), hint = meant === undefined ? "" : `did you mean "${meant}"? `;
  return refused(
    option,
    value,
    `it is not known; ${hint}there are ${KNOWN.join(", ")}. The conflist says everything else`,
  );
}
