/**
 * The identity of a client and what it asks for: the keys `request` and `provide` of the configuration, and option 61
 * (RFC 2132 section 9.14). Pure.
 */
import { CniError, INVALID_CONFIG } from "../../../../cni/error.ts";
import { LONGEST_OPTION, option } from "../message/message.ts";

export interface Requested {
  option?: string;
  skipDefault?: boolean;
}

export interface Provided {
  option?: string;
  value?: string;
  hex?: string;
  /** A key of CNI_ARGS; its value wins. */
  fromArg?: string;
}

/** The reference plugin's names. Every option also has its number. */
const numbers: Record<string, number> = {
  "dhcp-client-identifier": option.clientId,
  "host-name": option.hostName,
  "routers": option.routers,
  "subnet-mask": option.subnetMask,
  "user-class": option.userClass,
  "vendor-class-identifier": option.vendorClass,
};

/** Options that the protocol sets itself. */
const ownOptions = new Set<number>([
  option.pad,
  option.requestedAddress,
  option.leaseTime,
  option.overload,
  option.messageType,
  option.server,
  option.parameterList,
  option.longestMessage,
  option.relay,
  option.end,
]);

/** Classless routes before the others: a server that does not send all sends the first (RFC 3442). */
const usual: readonly number[] = [
  option.subnetMask,
  option.classlessRoutes,
  option.routers,
  option.staticRoutes,
  option.nameServers,
  option.domainName,
  option.searchList,
  option.mtu,
  option.broadcastAddress,
  option.timeServers,
  option.leaseTime,
  option.server,
  option.renewalTime,
  option.rebindingTime,
];

/** Servers hold reservations by it, so it is the reference plugin's. */
export function clientIdOf(containerId: string, network: string, ifName: string): Uint8Array {
  const name = new TextEncoder().encode(`${containerId}/${network}/${ifName}`).subarray(0, LONGEST_OPTION - 1);
  const id = new Uint8Array(1 + name.length);
  id.set(name, 1);
  return id;
}

/** Option 55: those of the configuration, then the usual ones unless an entry skips them. */
export function wantedOptions(requested: readonly Requested[]): number[] {
  const wanted = requested.filter((one) => one.option !== undefined && one.option !== "")
    .map((one) => optionNumber(one.option!, "request"));
  const skipsUsual = requested.some(({ skipDefault }) => skipDefault);
  return [...new Set([...wanted, ...skipsUsual && wanted.length > 0 ? [] : usual])];
}

/** The options that the configuration adds to each request. The last of repeated ones wins. */
export function providedOptions(
  provided: readonly Provided[],
  args: Readonly<Record<string, string | undefined>>,
): Map<number, Uint8Array> {
  const options = new Map<number, Uint8Array>();
  for (const { option: name = "", value = "", hex = "", fromArg = "" } of provided) {
    const number = optionNumber(name, "provide"), fromArgs = fromArg === "" ? undefined : args[fromArg];
    const text = fromArgs ?? value, bytes = text === "" ? bytesOf(hex) : new TextEncoder().encode(text);
    if (ownOptions.has(number)) {
      throw invalid("provide", `option ${JSON.stringify(name)} cannot be provided`, "the protocol sets it");
    }
    if (bytes.length > LONGEST_OPTION) {
      const origin = fromArgs === undefined ? "" : ` from CNI_ARGS "${fromArg}"`;
      throw invalid("provide", `value too long for option "${name}"${origin}: "${text}"`);
    }
    if (bytes.length > 0) options.set(number, bytes);
  }
  return options;
}

function bytesOf(hex: string): Uint8Array {
  if (/^([0-9A-Fa-f]{2})*$/.test(hex)) return Uint8Array.fromHex(hex);
  throw invalid("provide", `${JSON.stringify(hex)} is not valid`, "hex takes pairs of hexadecimal digits");
}

function optionNumber(name: string, key: string): number {
  if (Object.hasOwn(numbers, name)) return numbers[name]!;
  const number = /^[0-9]{1,3}$/.test(name) ? Number(name) : NaN;
  if (number <= 255) return number;
  const names = Object.keys(numbers).join(", ");
  throw invalid(key, `Can not parse option "${name}"`, `a number from 0 to 255, or one of ${names}`);
}

function invalid(key: string, problem: string, details = ""): CniError {
  return new CniError(INVALID_CONFIG, `ipam.${key}: ${problem}`, details);
}
