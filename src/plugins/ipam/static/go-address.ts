/**
 * Addresses in the form that the reference plugin writes. When it serialises its configuration, each item also has
 * `Address`, an IP with its mask, and `Version`. When it reads such a configuration, `Address` overrides `address`.
 */
import { CniError, INVALID_CONFIG } from "../../../cni/error.ts";
import { field, foldKey, isObject } from "../../../cni/json.ts";
import { formatAddress, parseAddress } from "../../../net/address.ts";

type Json = Record<string, unknown>;

/** The document with every `Address` written as `address`. `Address` is only recognised in this spelling. */
export function withAddressTexts(document: unknown): unknown {
  if (!isObject(document)) return document;
  const copy: Json = { ...document };
  for (const key of Object.keys(copy)) {
    const ipam = copy[key];
    if (foldKey(key) !== "ipam" || !isObject(ipam)) continue;
    const ipamCopy: Json = copy[key] = { ...ipam };
    for (const inner of Object.keys(ipamCopy)) {
      const addresses = ipamCopy[inner];
      if (foldKey(inner) !== "addresses" || !Array.isArray(addresses)) continue;
      ipamCopy[inner] = addresses.map((item, index) => (hasGoAddress(item) ? withText(item, index) : item));
    }
  }
  return copy;
}

function hasGoAddress(item: unknown): item is Json & { Address: Json } {
  return isObject(item) && Object.hasOwn(item, "Address") && isObject(item.Address);
}

function withText({ Address, ...rest }: Json & { Address: Json }, index: number): Json {
  const ip = field(Address, "IP") ?? "";
  if (ip === "") return rest;
  for (const key of Object.keys(rest)) if (foldKey(key) === "address") delete rest[key];
  const text = typeof ip === "string" ? prefixText(ip, field(Address, "Mask")) : undefined;
  if (text !== undefined) return { ...rest, address: text };
  const key = `"ipam.addresses[${index}].Address"`;
  throw new CniError(
    INVALID_CONFIG,
    `failed to load netconf: ${key}: ${JSON.stringify(Address)} is not an IP address with its mask`,
  );
}

function prefixText(ip: string, mask: unknown): string | undefined {
  const address = parseAddress(ip), bits = typeof mask === "string" ? bitsOf(mask, address?.length) : undefined;
  return address === undefined || bits === undefined ? undefined : `${formatAddress(address)}/${bits}`;
}

/** The prefix length of a mask in base64. An IPv4 mask may have 16 bytes. */
function bitsOf(mask: string, length: number | undefined): number | undefined {
  let bytes: Uint8Array;
  try {
    bytes = Uint8Array.fromBase64(mask);
  } catch {
    return undefined;
  }
  if (bytes.length === 16 && length === 4) bytes = bytes.subarray(12);
  const [, ones] = /^(1*)0*$/.exec(Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join("")) ?? [];
  return bytes.length === length ? ones?.length : undefined;
}
