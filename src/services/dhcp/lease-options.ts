/** What the configuration and CNI_ARGS say about a lease: `wishes` in requests to the service, and in its journal. */
import { isObject } from "../../cni/json.ts";
import type { Route } from "../../cni/result.ts";
import { parseAddress, parsePrefix } from "../../net/address.ts";

export interface LeaseOptions {
  /** Option 61 in hexadecimal digits. Without it the server goes by the MAC address. */
  clientId?: string;
  /** Option 55. */
  wanted: number[];
  /** Option numbers, each with its value in hexadecimal digits. */
  provided: [number: number, hex: string][];
  broadcast: boolean;
  probe: Probe;
  /** Only these servers are believed. An empty list means all. */
  servers: string[];
  denied: string[];
  onExpiry: typeof EXPIRIES[number];
  ignored: Ignored[];
  /** The metric of routes that have none of their own. */
  priority: number;
  /** Routes of the configuration. */
  routes?: Route[];
  /** If this is false, the container gets no IPv4 address. */
  v4: boolean;
  v6?: V6Options;
  /** ADD fails without these. */
  required: FamilyName[];
  /** Seconds until ADD gives up. */
  timeout?: number;
  /** The link of the host through which the container's frames go. */
  hostLink?: string;
}

export const PROBES = ["none", "fast", "full"] as const;
export const EXPIRIES = ["remove", "down", "keep"] as const;
export const IGNORED = ["routers", "routes", "dns", "mtu"] as const;
export const FAMILIES = ["ipv4", "ipv6"] as const;

/** How thoroughly to find out whether another host has the address (RFC 5227). */
export type Probe = typeof PROBES[number];
export type Ignored = typeof IGNORED[number];
export type FamilyName = typeof FAMILIES[number];

/** The container's identity for DHCPv6 servers, in hexadecimal digits (RFC 8415 sections 11 and 12). */
export interface V6Options {
  duid: string;
  iaid: string;
}

type Test = (value: unknown) => boolean;

const isHex: Test = (value) => typeof value === "string" && /^([0-9a-f]{2})*$/.test(value);
const isByte: Test = (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255;
const isText: Test = (value) => typeof value === "string";
const isNumber: Test = (value) => typeof value === "number";
const isBoolean: Test = (value) => typeof value === "boolean";
const listOf = (test: Test): Test => (value) => Array.isArray(value) && value.every(test);
const optional = (test: Test): Test => (value) => value === undefined || test(value);
const among = (words: readonly string[]): Test => (value) => words.includes(value as string);

const isPrefix: Test = (value) => typeof value === "string" && parsePrefix(value) !== undefined;
const isAddress: Test = (value) => typeof value === "string" && parseAddress(value) !== undefined;
const isRoute: Test = (value) =>
  isObject(value) && isPrefix(value.dst) && optional(isAddress)(value.gw) &&
  [value.mtu, value.advmss, value.priority, value.table, value.scope].every(optional(isNumber));

const tests: Record<keyof LeaseOptions, Test> = {
  clientId: optional(isHex),
  wanted: listOf(isByte),
  provided: listOf((one) => Array.isArray(one) && one.length === 2 && isByte(one[0]) && isHex(one[1])),
  broadcast: isBoolean,
  probe: among(PROBES),
  servers: listOf(isText),
  denied: listOf(isText),
  onExpiry: among(EXPIRIES),
  ignored: listOf(among(IGNORED)),
  priority: isNumber,
  routes: optional(listOf(isRoute)),
  v4: isBoolean,
  v6: optional((value) => isObject(value) && isHex(value.duid) && isHex(value.iaid)),
  required: listOf(among(FAMILIES)),
  timeout: optional(isNumber),
  hostLink: optional(isText),
};

/** Throws when it is something else: it comes from another process, or from a file. */
export function readLeaseOptions(value: unknown): LeaseOptions {
  if (!isObject(value)) throw new Error("wishes are missing");
  const wrong = Object.entries(tests).find(([key, isRight]) => !isRight(value[key]));
  if (wrong !== undefined) throw new Error(`${wrong[0]} of the wishes is wrong: ${JSON.stringify(value[wrong[0]])}`);
  return value as unknown as LeaseOptions;
}
