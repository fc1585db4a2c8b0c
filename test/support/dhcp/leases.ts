/** What servers write into their lease files, in one form. Pure. */
import { formatAddress } from "../../../src/net/address.ts";
import { formatMac } from "../../../src/net/mac.ts";

export type LeaseState = "active" | "free" | "declined";

export interface Lease {
  address: string;
  mac?: string;
  /** In hex; for IPv6 the client's DUID. */
  clientId?: string;
  hostName?: string;
  /** A lease whose time is over is free, whether or not the server has noticed. */
  state: LeaseState;
  /** Unix seconds. */
  ends: number;
}

/** Undefined where a file is only half written. */
export type LeaseReader = (file: Uint8Array, now: number) => Lease[] | undefined;

const ETHERNET_BYTES = 6, NEVER = Infinity;

function lease(one: Lease, now: number): Lease {
  if (one.state === "active" && one.ends <= now) one.state = "free";
  for (const key of ["mac", "clientId", "hostName"] as const) if (!one[key]) delete one[key];
  return one;
}

/** `expiry mac ip name client-id`, and after a line `duid …` for IPv6 `expiry iaid ip name duid`. Free ones are gone. */
export const readDnsmasq: LeaseReader = (file, now) => {
  const found: Lease[] = [];
  let isV6 = false;
  for (const line of new TextDecoder().decode(file).split("\n")) {
    const [expiry, link, address, name, id] = line.split(" ") as [string, ...(string | undefined)[]];
    if (expiry === "duid") isV6 = true;
    if (!/^\d+$/.test(expiry) || address === undefined) continue;
    const mac = isV6 ? undefined : link!.replace(/^\d\d-/, "");
    const clientId = plainHex(id), hostName = name === "*" ? undefined : name;
    found.push(lease({ address, mac, clientId, hostName, state: "active", ends: Number(expiry) || NEVER }, now));
  }
  return found;
};

/** When it was written, and 36 bytes a lease: seconds left, address, MAC, host name. */
export const readUdhcpd: LeaseReader = (file, now) => {
  const HEAD = 8, ENTRY = 36, view = new DataView(file.buffer, file.byteOffset, file.length);
  if (file.length === 0) return [];
  if ((file.length - HEAD) % ENTRY !== 0) return undefined;
  const written = Number(view.getBigInt64(0)), found: Lease[] = [];
  for (let at = HEAD; at < file.length; at += ENTRY) {
    const mac = file.subarray(at + 8, at + 8 + ETHERNET_BYTES), isDeclined = mac.every((byte) => byte === 0);
    const name = new TextDecoder().decode(file.subarray(at + 14, at + 34));
    found.push(lease({
      address: formatAddress(file.subarray(at + 4, at + 8)),
      mac: isDeclined ? undefined : formatMac(mac),
      hostName: name.replace(/\0[^]*$/, ""),
      state: isDeclined ? "declined" : "active",
      ends: written + view.getUint32(at),
    }, now));
  }
  return found;
};

/** A log of blocks, of which the last one for an address counts. Needs `db-time-format local`. */
export const readIsc: LeaseReader = (file, now) => {
  const text = new TextDecoder().decode(file), found = new Map<string, Lease>();
  for (const [, address, block] of text.matchAll(/^lease (\S+) \{\n([^]*?)^\}/gm)) {
    const mac = /hardware ethernet (\S+);/.exec(block!)?.[1], uid = /^ *uid "(.*)";$/m.exec(block!)?.[1];
    const hostName = /client-hostname "(.*)";/.exec(block!)?.[1];
    const clientId = uid === undefined ? undefined : unquoted(uid).toHex();
    found.set(address!, lease({ address: address!, mac, clientId, hostName, ...iscState(block!) }, now));
  }
  for (const [, id, block] of text.matchAll(/^ia-na "(.*)" \{\n([^]*?)^\}/gm)) {
    // After the four bytes of the IAID.
    const clientId = unquoted(id!).subarray(4).toHex();
    for (const [, address, inner] of block!.matchAll(/^ *iaaddr (\S+) \{\n([^]*?)^ *\}$/gm)) {
      found.set(address!, lease({ address: address!, clientId, ...iscState(inner!) }, now));
    }
  }
  return [...found.values()];
};

function iscState(block: string): Pick<Lease, "state" | "ends"> {
  const binding = /^ *binding state (\w+);/m.exec(block)?.[1], ends = /^ *ends epoch (\d+);/m.exec(block)?.[1];
  const state = binding === "abandoned" ? "declined" : binding === "active" ? "active" : "free";
  return { state, ends: ends === undefined ? NEVER : Number(ends) };
}

/** A string of C, with escapes in octal. */
function unquoted(text: string): Uint8Array {
  const bytes: number[] = [];
  for (const [one, octal, other] of text.matchAll(/\\([0-7]{3})|\\(.)|[^\\]/gs)) {
    const plain = (other === "n" ? "\n" : other === "t" ? "\t" : other === "r" ? "\r" : other) ?? one;
    bytes.push(...(octal === undefined ? new TextEncoder().encode(plain) : [parseInt(octal, 8)]));
  }
  return Uint8Array.from(bytes);
}

/** CSV with a line of names, in which the last line of an address counts. A released lease lasts 0 seconds. */
export const readKea: LeaseReader = (file, now) => {
  const [names, ...rows] = new TextDecoder().decode(file).split("\n").filter((line) => line !== "").map((line) =>
    line.split(",")
  );
  const found = new Map<string, Lease>();
  for (const row of rows) {
    if (row.length < names!.length) return undefined;
    const value = (name: string) => row[names!.indexOf(name)] ?? "";
    const isFree = value("valid_lifetime") === "0" || value("state") === "2", address = value("address");
    found.set(
      address,
      lease({
        address,
        mac: value("hwaddr"),
        clientId: plainHex(value("client_id") || value("duid")),
        hostName: value("hostname"),
        state: value("state") === "1" ? "declined" : isFree ? "free" : "active",
        ends: Number(value("expire")),
      }, now),
    );
  }
  return [...found.values()];
};

function plainHex(text: string | undefined): string | undefined {
  return text === undefined || text === "*" ? undefined : text.replaceAll(":", "").toLowerCase();
}
