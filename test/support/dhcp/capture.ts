/** What a link carries, as tcpdump(8) saw it: whom frames are for, which sockets do not tell. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeReply, type Message } from "../../../src/services/dhcp/v4/message/message.ts";
import { decodeRequest } from "./other-side.ts";
import { formatAddress } from "../../../src/net/address.ts";
import { formatMac } from "../../../src/net/mac.ts";
import type { Container } from "../machine.ts";
import type { Segment } from "./link.ts";

export interface Frame {
  /** Unix milliseconds. */
  time: number;
  from: string;
  to: string;
  /** 0x0800 is IPv4, 0x0806 ARP, 0x86dd IPv6. */
  type: number;
  /** IP addresses; an ARP packet's sender and target. */
  source?: string;
  destination?: string;
  /** 1 is ICMP, 17 UDP, 58 ICMPv6. */
  protocol?: number;
  sourcePort?: number;
  destinationPort?: number;
  icmp?: { type: number; code: number };
  /** 1 asks, 2 answers. */
  arp?: { operation: number };
  /** UDP's. */
  payload?: Uint8Array;
  /** A DHCPv4 message that is one. */
  dhcp?: Message;
}

export interface Capture extends AsyncDisposable {
  /** The frames that have been written by now: wait for what must come. */
  frames(): Frame[];
}

export const BROADCAST = "ff:ff:ff:ff:ff:ff";

let count = 0;

/** Begins at once: what is sent after the answer is in it. `filter` is tcpdump's, as in `udp or arp`. */
export async function captureIn(
  segment: Segment,
  namespace: Container | undefined,
  { link = "s0", filter = "" } = {},
): Promise<Capture> {
  const file = join(segment.folder, `capture-${++count}.pcap`);
  // Without --immediate-mode frames wait in the kernel until there are many.
  const command = ["tcpdump", "-i", link, "-n", "-U", "--immediate-mode", "-Z", "root", "-w", file, filter];
  const running = segment.start(namespace, command, { log: `${file}.log` });
  await running.until(() => running.log().includes("listening on"));
  return {
    frames: () => existsSync(file) ? readCapture(readFileSync(file)) : [],
    [Symbol.asyncDispose]: () => running.stop("SIGINT"),
  };
}

const FILE_HEADER = 24, RECORD_HEADER = 16;

/** A record that is only half written is left out. */
export function readCapture(file: Uint8Array): Frame[] {
  const view = new DataView(file.buffer, file.byteOffset, file.length), frames: Frame[] = [];
  for (let at = FILE_HEADER; at + RECORD_HEADER <= file.length;) {
    const time = view.getUint32(at, true) * 1000 + view.getUint32(at + 4, true) / 1000;
    const end = at + RECORD_HEADER + view.getUint32(at + 8, true);
    if (end > file.length) break;
    frames.push(readFrame(file.subarray(at + RECORD_HEADER, end), time));
    at = end;
  }
  return frames;
}

const IPV4 = 0x0800, ARP = 0x0806, IPV6 = 0x86dd, ETHERNET_HEADER = 14, IPV6_HEADER = 40;
const ICMP = 1, UDP = 17, ICMPV6 = 58;

function readFrame(bytes: Uint8Array, time: number): Frame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), type = view.getUint16(12);
  const address = (at: number, length: number) => formatAddress(bytes.subarray(at, at + length));
  const frame: Frame = { time, from: formatMac(bytes.subarray(6, 12)), to: formatMac(bytes.subarray(0, 6)), type };
  const body = ETHERNET_HEADER;
  if (type === ARP) {
    const ends = { source: address(body + 14, 4), destination: address(body + 24, 4) };
    return { ...frame, ...ends, arp: { operation: view.getUint16(body + 6) } };
  }
  if (type === IPV4) {
    const header = (bytes[body]! & 0x0f) * 4, protocol = bytes[body + 9]!;
    const ends = { source: address(body + 12, 4), destination: address(body + 16, 4), protocol };
    return { ...frame, ...ends, ...readTransport(bytes.subarray(body + header), protocol) };
  }
  if (type === IPV6) {
    const protocol = bytes[body + 6]!;
    const ends = { source: address(body + 8, 16), destination: address(body + 24, 16), protocol };
    return { ...frame, ...ends, ...readTransport(bytes.subarray(body + IPV6_HEADER), protocol) };
  }
  return frame;
}

function readTransport(bytes: Uint8Array, protocol: number): Partial<Frame> {
  if (protocol === ICMP || protocol === ICMPV6) return { icmp: { type: bytes[0]!, code: bytes[1]! } };
  if (protocol !== UDP) return {};
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const payload = bytes.slice(8, view.getUint16(4)), dhcp = decodeRequest(payload) ?? decodeReply(payload);
  const ports = { sourcePort: view.getUint16(0), destinationPort: view.getUint16(2) };
  return { ...ports, payload, ...(dhcp === undefined ? {} : { dhcp }) };
}
