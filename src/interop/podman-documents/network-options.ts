/** The options of networks; all values are text. `create` refuses unknown options, the other commands ignore them. */
import type { VlanDriver } from "./drivers.ts";
import { parseAddress } from "../../net/address.ts";
import { readInteger } from "./integer.ts";

type Options = Readonly<Record<string, string>> | undefined;

const U32_MAX = 2 ** 32 - 1, I32_MAX = 2 ** 31 - 1, HIGHEST_VLAN = 4094;

export interface BridgeOptions {
  mode: "managed" | "unmanaged";
  isolate: "strict" | "true" | "false";
  noDefaultRoute: boolean;
  mtu?: number | undefined;
  metric?: number | undefined;
  vrf?: string | undefined;
  vlan?: number | undefined;
  /** The source address of packets that leave the host, instead of masquerading. */
  outbound4?: string | undefined;
  outbound6?: string | undefined;
}

const bridgeKeys = new Set([
  "isolate",
  "metric",
  "mode",
  "mtu",
  "no_default_route",
  "outbound_addr4",
  "outbound_addr6",
  "vlan",
  "vrf",
]);

export function readBridgeOptions(options: Options): BridgeOptions {
  const vlan = integer(options, "vlan", 0, 65535);
  if (vlan !== undefined && vlan > HIGHEST_VLAN) throw new Error(`vlan must be between 0 and ${HIGHEST_VLAN}`);
  return {
    mode: choice(options, "mode", ["managed", "unmanaged"], "bridge mode"),
    mtu: integer(options, "mtu", 0, U32_MAX),
    isolate: choice(options, "isolate", ["strict", "true", "false"], "isolate option"),
    metric: integer(options, "metric", 0, U32_MAX),
    noDefaultRoute: truth(options, "no_default_route"),
    vrf: value(options, "vrf"),
    vlan,
    outbound4: address(options, "outbound_addr4", 4),
    outbound6: address(options, "outbound_addr6", 6),
  };
}

export function refuseUnknownBridgeOptions(options: Options): void {
  for (const key of Object.keys(options ?? {})) {
    if (!bridgeKeys.has(key)) throw new Error(`unsupported bridge network option: ${key}`);
  }
}

/** The options of macvlan and ipvlan. */
interface VlanOptions {
  mode: string;
  noDefaultRoute: boolean;
  mtu?: number | undefined;
  metric?: number | undefined;
  /** Broadcasts to fewer links than this are delivered at once; macvlan only. */
  broadcastLimit?: number | undefined;
}

const vlanKeys = new Set(["bclim", "metric", "mode", "mtu", "no_default_route"]);

const modes: Readonly<Record<VlanDriver, readonly string[]>> = {
  macvlan: ["bridge", "private", "vepa", "passthru", "source"],
  ipvlan: ["l2", "l3", "l3s"],
};

export function readVlanOptions(driver: VlanDriver, options: Options): VlanOptions {
  const broadcastLimit = integer(options, "bclim", -1 - I32_MAX, I32_MAX);
  return {
    mode: choice(options, "mode", modes[driver], `${driver} mode`),
    mtu: integer(options, "mtu", 0, U32_MAX),
    metric: integer(options, "metric", 0, U32_MAX),
    noDefaultRoute: truth(options, "no_default_route"),
    broadcastLimit,
  };
}

export function refuseUnknownVlanOptions(driver: VlanDriver, options: Options): void {
  for (const key of Object.keys(options ?? {})) {
    if (!vlanKeys.has(key)) throw new Error(`unsupported vlan network option: ${key}`);
    if (key === "bclim" && driver === "ipvlan") throw new Error("unsupported ipvlan network option bclim");
  }
}

function value(options: Options, name: string): string | undefined {
  return options !== undefined && Object.hasOwn(options, name) ? options[name] : undefined;
}

function integer(options: Options, name: string, least: number, most: number): number | undefined {
  const text = value(options, name);
  if (text === undefined) return undefined;
  const read = readInteger(text, least, most);
  if (typeof read === "string") throw unreadable(name, read, text);
  return read;
}

function truth(options: Options, name: string): boolean {
  const text = value(options, name) ?? "false";
  if (text !== "true" && text !== "false") throw unreadable(name, "provided string was not `true` or `false`", text);
  return text === "true";
}

/** Without the option, the first choice. */
function choice<Choice extends string>(
  options: Options,
  name: string,
  choices: readonly Choice[],
  what: string,
): Choice {
  const text = value(options, name) ?? "";
  if (text === "") return choices[0]!;
  if (choices.includes(text as Choice)) return text as Choice;
  throw new Error(`invalid ${what} ${JSON.stringify(text)}: expected ${choices.join(", ")}`);
}

function address(options: Options, name: string, family: 4 | 6): string | undefined {
  const text = value(options, name);
  if (text === undefined) return undefined;
  if (parseAddress(text)?.length === (family === 4 ? 4 : 16)) return text;
  throw unreadable(name, `invalid IPv${family} address syntax`, text);
}

function unreadable(name: string, reason: string, text: string): Error {
  return new Error(`unable to parse ${JSON.stringify(name)}: ${reason}: ${JSON.stringify(text)}`);
}
