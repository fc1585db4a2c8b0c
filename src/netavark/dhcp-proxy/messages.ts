/** The messages of netavark's proxy, in the wire format of protocol buffers. Pure. */
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { codes, GrpcError } from "./grpc.ts";

/** What netavark asks for. What is empty is not there. */
export interface NetworkConfig {
  hostIface: string;
  containerIface: string;
  containerMac: string;
  domainName: string;
  hostName: string;
  /** 0 is IPv4. */
  version: number;
  netnsPath: string;
  containerId: string;
}

/** What it is told, also in the file of leases, whose keys these are. */
export interface Lease {
  t1: number;
  t2: number;
  lease_time: number;
  mtu: number;
  domain_name: string;
  mac_address: string;
  is_v6: boolean;
  siaddr: string;
  yiaddr: string;
  srv_id: string;
  subnet_mask: string;
  broadcast_addr: string;
  dns_servers: string[];
  gateways: string[];
  ntp_servers: string[];
  host_name: string;
}

const numbersOfLease: readonly (readonly [number: number, key: keyof Lease])[] = [
  [1, "t1"],
  [2, "t2"],
  [3, "lease_time"],
  [4, "mtu"],
  [5, "domain_name"],
  [6, "mac_address"],
  [10, "is_v6"],
  [11, "siaddr"],
  [12, "yiaddr"],
  [16, "srv_id"],
  [17, "subnet_mask"],
  [18, "broadcast_addr"],
  [19, "dns_servers"],
  [20, "gateways"],
  [21, "ntp_servers"],
  [22, "host_name"],
];

const VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5;

/** Throws GrpcError. Fields that it does not know are passed over. */
export function readConfig(message: Uint8Array): NetworkConfig {
  const texts: string[] = [];
  let version = 0;
  for (const { number, value } of fieldsIn(message)) {
    if (number === 6 && typeof value === "number") version = value;
    else if (number < 9 && number !== 6 && typeof value !== "number") texts[number] = fromUtf8(value);
  }
  const [, hostIface = "", containerIface = "", containerMac = "", domainName = "", hostName = ""] = texts;
  const netnsPath = texts[7] ?? "", containerId = texts[8] ?? "";
  return { hostIface, containerIface, containerMac, domainName, hostName, version, netnsPath, containerId };
}

interface FoundField {
  number: number;
  value: number | Uint8Array;
}

function* fieldsIn(message: Uint8Array): Generator<FoundField> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = message[at++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  };
  const bytes = (length: number): Uint8Array => {
    if (at + length > message.length) throw malformed();
    return message.subarray(at, at += length);
  };
  while (at < message.length) {
    const key = varint(), number = Math.floor(key / 8);
    switch (key % 8) {
      case VARINT:
        yield { number, value: varint() };
        break;
      case BYTES:
        yield { number, value: bytes(varint()) };
        break;
      case FIXED64:
        bytes(8);
        break;
      case FIXED32:
        bytes(4);
        break;
      default:
        throw malformed();
    }
  }
}

function malformed(): GrpcError {
  return new GrpcError(codes.internal, "the request is malformed");
}

export function writeLease(lease: Lease): Uint8Array {
  const bytes: number[] = [];
  for (const [number, key] of numbersOfLease) {
    const value = lease[key];
    if (Array.isArray(value)) { for (const each of value) pushText(bytes, number, each); }
    else if (typeof value === "string") value !== "" && pushText(bytes, number, value);
    else if (Number(value) !== 0) pushNumber(bytes, number, Number(value));
  }
  return new Uint8Array(bytes);
}

/** Of `Clean`. */
export const success: Uint8Array = new Uint8Array([8, 1]);

function pushText(bytes: number[], number: number, text: string): void {
  const value = utf8(text);
  pushVarint(bytes, number * 8 + BYTES);
  pushVarint(bytes, value.length);
  bytes.push(...value);
}

function pushNumber(bytes: number[], number: number, value: number): void {
  pushVarint(bytes, number * 8 + VARINT);
  pushVarint(bytes, value);
}

function pushVarint(bytes: number[], value: number): void {
  let left = value;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 0x80);
  bytes.push(left);
}
