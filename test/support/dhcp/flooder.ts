/**
 * A process that sends frames on the link `s0` as fast as it may, until it is stopped: `KIND`. It hears the requests of
 * DHCP clients and answers each with junk, over and over. Kinds are in flood.ts.
 */
import { libc } from "../../../src/ffi/libc.ts";
import { getLink } from "../../../src/ffi/netlink/route/link.ts";
import { NETLINK_ROUTE, openNetlink } from "../../../src/ffi/netlink/socket.ts";
import { PacketSocket } from "../../../src/ffi/socket/packet.ts";
import { OFFER, option } from "../../../src/services/dhcp/v4/message/message.ts";
import { encodeReply } from "./other-side.ts";
import { wrap } from "../../../src/services/dhcp/v4/message/packet.ts";
import { checksum6 } from "../../../src/net/checksum.ts";
import { parseAddress } from "../../../src/net/address.ts";
import { parseMac } from "../../../src/net/mac.ts";
import type { FloodKind } from "./flood.ts";

const kind = process.argv[2] as FloodKind, target = process.argv[3] ?? "";
const isV6 = kind.startsWith("v6");
const ETHERNET_HEADER = 14, IPV6_HEADER = 40, UDP_HEADER = 8, BATCH = 128;
const ETH_P_IP = 0x0800, ETH_P_IPV6 = 0x86dd, ETH_P_ARP = 0x0806;
const ALL_CARDS = new Uint8Array(6).fill(255);

const route = openNetlink(NETLINK_ROUTE), link = getLink(route, "s0")!, own = parseMac(link.mac)!;
const AF_PACKET = 17, SOCK_RAW = 3;
const raw = libc.socket(AF_PACKET, SOCK_RAW, 0);
const goal = new DataView(new ArrayBuffer(20));
goal.setUint16(0, AF_PACKET, true);
goal.setInt32(4, link.index, true);
const goalBytes = new Uint8Array(goal.buffer);

/** Everything of its kind that comes along; it picks out the requests itself. */
const everything = [{ keeps: true, when: [] }];
const requests = PacketSocket.open(link.index, isV6 ? ETH_P_IPV6 : ETH_P_IP, everything);

function frame(type: number, to: Uint8Array, packet: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(ETHERNET_HEADER + packet.length);
  bytes.set(to);
  bytes.set(own, 6);
  bytes.set([type >> 8, type & 0xff], 12);
  bytes.set(packet, ETHERNET_HEADER);
  return bytes;
}

/** 600 options, none of which a client needs. */
function junk4(xid: number, mac: Uint8Array): Uint8Array {
  const options = new Map([[option.messageType as number, Uint8Array.of(OFFER)]]);
  const broadcast = new Uint8Array(4).fill(255), server = parseAddress("192.168.77.250")!;
  const short = encodeReply({ xid, secs: 0, broadcast: false, yourAddress: server, mac, options });
  const message = new Uint8Array(1472).fill(0, 0);
  message.set(short.subarray(0, 243));
  for (let at = 243, count = 0; count < 600; at += 2, count++) message[at] = 224 + count % 16;
  const packet = wrap(server, broadcast, message);
  // A frame from the server's port to the client's: the sum stays what it is.
  packet.set([0, 67, 0, 68], 20);
  return packet;
}

function v6(
  source: Uint8Array,
  destination: Uint8Array,
  protocol: number,
  body: Uint8Array,
  sumAt: number,
): Uint8Array {
  const packet = new Uint8Array(IPV6_HEADER + body.length), view = new DataView(packet.buffer);
  packet[0] = 6 << 4;
  view.setUint16(4, body.length);
  packet.set([protocol, 255], 6);
  packet.set(source, 8);
  packet.set(destination, 24);
  packet.set(body, IPV6_HEADER);
  view.setUint16(IPV6_HEADER + sumAt, checksum6(packet, protocol) || 0xffff);
  return packet;
}

function junk6(source: Uint8Array, client: Uint8Array, xid: Uint8Array): Uint8Array {
  const message = new Uint8Array(4 + 300 * 4), body = new Uint8Array(UDP_HEADER + message.length);
  message.set([2, ...xid]);
  for (let count = 0; count < 300; count++) message[4 + count * 4] = 200;
  body.set([547 >> 8, 547 & 0xff, 546 >> 8, 546 & 0xff, body.length >> 8, body.length & 0xff]);
  body.set(message, UDP_HEADER);
  return v6(source, client, 17, body, 6);
}

/** The frame that the request makes it send from now on; undefined when it is no client's. */
function answerTo(packet: Uint8Array): Uint8Array | undefined {
  const view = new DataView(packet.buffer, packet.byteOffset, packet.length);
  if (isV6) {
    if (packet[6] !== 17 || view.getUint16(42) !== 547) return undefined;
    const client = packet.slice(8, 24), xid = packet.slice(49, 52), source = client.slice();
    source.set([0xba, 0xad], 14);
    return frame(ETH_P_IPV6, client6Mac!, junk6(source, client, xid));
  }
  if (packet[9] !== 17 || view.getUint16(22) !== 67) return undefined;
  const mac = packet.slice(56, 62), xid = view.getUint32(32);
  return frame(ETH_P_IP, mac, junk4(xid, kind === "v4 for others" ? own : mac));
}

let client6Mac: Uint8Array | undefined;

/** Whatever hosts ask about an address that they do not have. */
function neighbours(address: Uint8Array): Uint8Array[] {
  if (address.length === 4) {
    const ask = (operation: number, sender: Uint8Array, wanted: Uint8Array) => {
      const arp = Uint8Array.of(0, 1, 8, 0, 6, 4, 0, operation, ...own, ...sender, 0, 0, 0, 0, 0, 0, ...wanted);
      return frame(ETH_P_ARP, ALL_CARDS, arp);
    };
    const stranger = parseAddress("192.168.77.251")!;
    return [
      ask(1, stranger, address),
      ask(2, stranger, address),
      ask(1, new Uint8Array(4), stranger),
      ask(3, address, address),
    ];
  }
  const stranger = parseAddress("fe80::bad")!, everybody = parseAddress("ff02::1")!;
  const discover = (type: number, source: Uint8Array, about: Uint8Array) => {
    const body = new Uint8Array(24);
    body[0] = type;
    body.set(about, 8);
    return frame(ETH_P_IPV6, Uint8Array.fromHex("333300000001"), v6(source, everybody, 58, body, 2));
  };
  return [
    discover(135, stranger, address),
    discover(136, stranger, stranger),
    discover(135, new Uint8Array(16), stranger),
  ];
}

let frames: Uint8Array[] = target === "" ? [] : neighbours(parseAddress(target)!);
const isFromMany = kind.endsWith("of many");
console.log("floods");
for (let seed = 0;;) {
  for (let packet = requests.receive(); packet !== undefined && target === ""; packet = requests.receive()) {
    client6Mac = packet.from;
    const answer = answerTo(packet.bytes);
    if (answer !== undefined) frames = [answer];
  }
  // Faster than the service reads, and slow enough for others to have the processor.
  Bun.sleepSync(1);
  for (let count = 0; count < BATCH && frames.length > 0; count++) {
    const bytes = frames[count % frames.length]!;
    if (isFromMany) {
      seed = (seed + 1) % 0xffffff;
      const view = new DataView(bytes.buffer), sumAt = ETHERNET_HEADER + IPV6_HEADER + 6;
      view.setUint32(8, seed);
      // Its source, and as much less in the sum: it stays right.
      if (isV6) {
        const at = ETHERNET_HEADER + 8 + 14, changed = (view.getUint16(at) + 1) % 0xffff;
        const sum = view.getUint16(sumAt) + view.getUint16(at) - changed;
        view.setUint16(at, changed);
        view.setUint16(sumAt, (sum + 0xffff) % 0xffff || 0xffff);
      }
    }
    libc.sendto(raw, bytes, bytes.length, 0, goalBytes, goalBytes.length);
  }
}
