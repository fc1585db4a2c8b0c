/** What a test asks of a server: addresses, times and options, in words that all servers are configured from. */
import { parseAddress, parsePrefix } from "../../../src/net/address.ts";

/** Options by number, in hex. */
export type OptionValues = Readonly<Record<number, string>>;

export interface Offer4 {
  /** The first and the last address. */
  range: readonly [string, string];
  /** The subnet of the range; 192.168.77.0/24 unless a relay's. */
  subnet?: string;
  /** dnsmasq makes at least 120 of it, so there only T1 and T2 are short. */
  leaseSeconds?: number;
  /** T1 and T2; when they are left out the server chooses, and most then send none. */
  renewSeconds?: number;
  rebindSeconds?: number;
  /** Option 3; the server itself unless given, none when empty. */
  routers?: readonly string[];
  /** Any others. Servers send most only to who asks for them. */
  options?: OptionValues;
  /** Says NAK for addresses that it knows nothing of, as the only server of the link; true unless given. */
  authoritative?: boolean;
}

export interface Offer6 {
  range: readonly [string, string];
  preferredSeconds?: number;
  validSeconds?: number;
  renewSeconds?: number;
  rebindSeconds?: number;
  nameServers?: readonly string[];
  searchList?: readonly string[];
  /** Answers a SOLICIT with RAPID_COMMIT by a REPLY. Kea only. */
  rapidCommit?: boolean;
}

export const OFFER4 = { range: ["192.168.77.100", "192.168.77.120"] } as const satisfies Offer4;
export const OFFER6 = { range: ["fd00:77::100", "fd00:77::1ff"] } as const satisfies Offer6;

export const SUBNET = "192.168.77.0/24", PREFIX6 = "fd00:77::/64";

/** Values of options. */
export const value = {
  addresses: (...list: string[]) => list.map((one) => parseAddress(one)!.toHex()).join(""),
  text: (text: string) => Buffer.from(text).toString("hex"),
  u8: (number: number) => number.toString(16).padStart(2, "0"),
  u16: (number: number) => number.toString(16).padStart(4, "0"),
  u32: (number: number) => number.toString(16).padStart(8, "0"),
  /** Option 121 (RFC 3442). */
  routes: (...list: [destination: string, router: string][]) =>
    list.map(([destination, router]) => {
      const { bytes, bits } = parsePrefix(destination)!;
      const kept = bytes.subarray(0, Math.ceil(bits / 8));
      return value.u8(bits) + kept.toHex() + value.addresses(router);
    }).join(""),
  /** Option 119, without compression. */
  names: (...list: string[]) =>
    list.map((name) => [...name.split("."), ""].map((label) => value.u8(label.length) + value.text(label)).join(""))
      .join(
        "",
      ),
};

/** All options of an offer but those that every server writes by itself. */
export function optionsOf(offer: Offer4, server: string): [code: number, hex: string][] {
  const routers = offer.routers ?? [server];
  const all: Record<number, string> = {};
  if (routers.length > 0) all[3] = value.addresses(...routers);
  Object.assign(all, offer.options);
  return Object.entries(all).map(([code, hex]) => [Number(code), hex]);
}

/** `0a:ff` */
export function coloned(hex: string): string {
  return hex.replaceAll(/(?<=..)(?=(..)+$)/g, ":");
}

/** The mask of a prefix: `255.255.255.0`. */
export function maskOf(subnet: string): string {
  const bits = 0xffffffff << (32 - parsePrefix(subnet)!.bits);
  return [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join(".");
}
