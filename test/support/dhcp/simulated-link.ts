/**
 * A container's link without a kernel, for what the service decides: whatever would make a socket in the container's
 * namespace makes a simulated one. A server, or another host, is at the other end. Everything that the service does is told
 * in words, in order. That a kernel does the same is for the tests in services/dhcp/plugin/.
 */
import { spyOn } from "bun:test";
import * as events from "../../../src/ffi/netlink/events.ts";
import * as links from "../../../src/ffi/netlink/route/link.ts";
import * as netlink from "../../../src/ffi/netlink/socket.ts";
import * as packets from "../../../src/ffi/socket/packet.ts";
import * as random from "../../../src/ffi/random.ts";
import * as clock from "../../../src/ffi/clock.ts";
import * as sysctl from "../../../src/ffi/sysctl.ts";
import * as terminal from "../../../src/ffi/terminal.ts";
import { EADDRNOTAVAIL, SyscallError } from "../../../src/ffi/errno.ts";
import type { Datagram, KernelTransport } from "../../../src/ffi/netlink/transport.ts";
import { firstAddress } from "../../../src/ffi/netlink/route/address.ts";
import { ETH_P_IP, type Packet, PacketSocket } from "../../../src/ffi/socket/packet.ts";
import { UdpSocket } from "../../../src/ffi/socket/udp.ts";
import { LinkGone, NetnsHandle } from "../../../src/services/dhcp/link/netns-handle.ts";
import { type Message } from "../../../src/services/dhcp/v4/message/message.ts";
import { decodeRequest } from "./other-side.ts";
import { CLIENT_PORT, SERVER_PORT, wrap } from "../../../src/services/dhcp/v4/message/packet.ts";
import { decode, encode, type Message6 } from "../../../src/services/dhcp/v6/message/message.ts";
import { formatAddress, parseAddress } from "../../../src/net/address.ts";
import { formatMac, parseMac } from "../../../src/net/mac.ts";
import { kindOf } from "./message-name.ts";
import { Clerk, type Script } from "./script.ts";
import { advertisement, arpReply, nameOf, names6, RIVAL_MAC } from "./simulated-frames.ts";
import { SimulatedNetlink } from "./simulated-netlink.ts";
import { type Frame, SimulatedSocket } from "./simulated-sockets.ts";

export const MAC = "02:00:00:00:00:07", SERVER = "192.168.77.1", SERVER_MAC = "02:00:00:00:00:01";
export const LINK_LOCAL = "fe80::7", SERVER6 = "fe80::1";
const EVENTS_FD = 99, INDEX = 7, NAME = "simulated0", ETH_P_IPV6 = 0x86dd, HEADERS_BYTES = 28, UDP6_BYTES = 8;

/** The log's memory is the process's, so time never goes back. */
let minutes = 0;

type AnySocket = SimulatedSocket<unknown>;

export class SimulatedLink implements Disposable {
  /** What the service did, in order. */
  readonly did: string[] = [];
  /** Every packet that it sent, by what `did` calls it. */
  readonly packets: { what: string; to: Uint8Array; bytes: Uint8Array }[] = [];
  readonly link = { index: INDEX, name: NAME, mac: MAC, mtu: 1500, up: true } as links.Link;
  readonly netlink = new SimulatedNetlink(INDEX, (what) => void this.did.push(what));
  /** The service's log, which may say everything again. */
  readonly log: string[] = [];
  /** How often the namespace is open, or netlink in the host's. */
  handles = 0;
  cookie: string | undefined = "cookie";
  /** Why the namespace cannot be opened. */
  gone: string | undefined;
  /** Why nothing can be sent or opened. */
  broken: SyscallError | undefined;
  /** Seconds since boot, where nobody hands them on: a minute goes by each time. */
  clock = () => 60 * ++minutes;
  /** Links of the host, by name. */
  readonly hostLinks = new Map<string, number>();
  /** Addresses that another host has. */
  readonly rivals = new Set<string>();
  /** The answers of DHCPv6's servers; undefined: none. */
  answer6: (asked: Message6) => Message6[] = () => [];
  /** Notifications of changed addresses that have not been read. */
  changes: (Error | Datagram)[] = [];

  private server: Clerk | undefined;
  private readonly sockets = new Map<AnySocket, number | string>();
  private count = 100;
  private readonly spies: { mockRestore(): void }[];

  constructor(script?: Script) {
    this.script(script);
    this.netlink.addresses.set(`${LINK_LOCAL}/64`, 0);
    let numbers = 0;
    this.spies = [
      spyOn(NetnsHandle, "open").mockImplementation(() => this.openHandle()),
      spyOn(PacketSocket, "open").mockImplementation((link, protocol, rules) =>
        this.openPackets(link, protocol, rules) as never
      ),
      spyOn(UdpSocket, "open").mockImplementation((from, ifName) => this.openUdp(from, ifName) as never),
      spyOn(netlink, "openNetlink").mockImplementation(() => {
        this.handles++;
        return { ...this.netlink.socket, close: () => void this.handles-- };
      }),
      spyOn(links, "getLink").mockImplementation((_, name) => {
        const index = this.hostLinks.get(String(name));
        return index === undefined ? undefined : { index } as links.Link;
      }),
      spyOn(packets, "sendFrame").mockImplementation((link, frame) => this.sendFrame(link, frame)),
      spyOn(events, "openEvents").mockImplementation((...groups) => this.openEvents(groups)),
      spyOn(sysctl, "tryWriteSysctl").mockImplementation((path, value) => {
        this.did.push(`${path.replace(`net/ipv6/conf/${NAME}/`, "")} = ${value}`);
      }),
      spyOn(terminal, "printToStderr").mockImplementation((line) => void this.log.push(line)),
      spyOn(clock, "preciseSecondsSinceBoot").mockImplementation(() => this.clock()),
      // Nothing is left to chance, and no two exchanges have a number in common.
      spyOn(random, "randomBytes").mockImplementation((length) => {
        const bytes = new Uint8Array(length);
        new DataView(bytes.buffer).setUint32(length - 4, 0x80000000 + numbers++);
        return bytes;
      }),
    ];
  }

  script(script: Script | undefined): void {
    this.server = script && new Clerk(script, SERVER);
  }

  /** What was done since this was asked last. */
  news(): string[] {
    return this.did.splice(0);
  }

  /** Descriptors with something to read. */
  ready(): Set<number> {
    const ready = [...this.sockets.keys()].filter(({ queue }) => queue.length > 0).map(({ fd }) => fd);
    return new Set([...ready, ...this.changes.length > 0 ? [EVENTS_FD] : []]);
  }

  /** How many frames have not been read. */
  get queued(): number {
    return [...this.sockets.keys()].reduce((sum, { queue }) => sum + queue.length, 0);
  }

  /** How many sockets are open. */
  get open(): number {
    return this.sockets.size;
  }

  /** A frame of IP, or of another protocol, for packet sockets. */
  arrive(protocol: number, bytes: Uint8Array, from = SERVER_MAC): void {
    const link = Uint8Array.of(...parseMac(MAC)!, ...parseMac(from)!, protocol >> 8, protocol & 0xff);
    this.deliver(protocol, { link, ip: bytes, data: bytes });
  }

  /** A message of a DHCPv4 server. */
  arrive4(message: Uint8Array, from = SERVER_MAC): void {
    const packet = wrap(parseAddress(SERVER)!, new Uint8Array(4).fill(255), message),
      view = new DataView(packet.buffer);
    // The other way round, which leaves the sums as they are.
    view.setUint16(20, SERVER_PORT);
    view.setUint16(22, CLIENT_PORT);
    this.arrive(ETH_P_IP, packet, from);
  }

  /** A message of a DHCPv6 server. */
  arrive6(message: Message6, from = SERVER6): void {
    const ip = new Uint8Array(40);
    ip.set(parseAddress(from)!, 8);
    this.deliver("udp6", {
      link: new Uint8Array(),
      ip,
      data: Uint8Array.of(...new Uint8Array(UDP6_BYTES), ...encode(message)),
    });
  }

  private deliver(kind: number | string, frame: Frame): void {
    for (const [socket, one] of this.sockets) if (one === kind) socket.take(frame);
  }

  private openHandle(): NetnsHandle {
    if (this.gone !== undefined) throw new LinkGone(this.gone);
    this.handles++;
    const { link, cookie } = this, route = this.netlink.socket;
    return {
      link,
      route,
      cookie,
      inside: <T>(work: () => T) => work(),
      address: (...which: Parameters<NetnsHandle["address"]>) => firstAddress(route, INDEX, ...which),
      close: () => void this.handles--,
    } as unknown as NetnsHandle;
  }

  private opened(socket: AnySocket, kind: number | string): AnySocket {
    if (this.broken !== undefined) throw this.broken;
    this.sockets.set(socket, kind);
    const close = socket.close.bind(socket);
    socket.close = () => {
      close();
      this.sockets.delete(socket);
    };
    return socket;
  }

  private openPackets(link: number, protocol: number, rules: ConstructorParameters<typeof SimulatedSocket>[1]) {
    if (link !== INDEX) throw new Error(`link ${link} is not there`);
    const read = ({ link, data }: Frame): Packet => ({ bytes: data, from: link.slice(6, 12), isSummed: true });
    const socket = new SimulatedSocket(
      this.count++,
      rules,
      (to, bytes) => this.sendPacket(protocol, to, bytes),
      read,
    );
    return this.opened(socket, protocol);
  }

  private sendPacket(protocol: number, to: Uint8Array, bytes: Uint8Array): void {
    if (protocol === ETH_P_IP) {
      const message = decodeRequest(bytes.subarray(HEADERS_BYTES))!;
      const [source, destination] = [12, 16].map((at) => formatAddress(bytes.subarray(at, at + 4)));
      this.send(nameOf(message, source!, destination!, formatMac(to)), to, bytes);
      this.answer4(message);
    } else if (protocol === ETH_P_IPV6) {
      const target = formatAddress(bytes.subarray(48, 64));
      this.send(`who has ${target}`, to, bytes);
      if (this.rivals.has(target)) this.arrive(protocol, advertisement(bytes), RIVAL_MAC);
    } else {
      const [sender, target] = [14, 24].map((at) => formatAddress(bytes.subarray(at, at + 4)));
      this.send(sender === target ? `${target} is here` : `who has ${target}`, to, bytes);
      if (this.rivals.has(target!)) this.arrive(protocol, arpReply(bytes), RIVAL_MAC);
    }
  }

  private openUdp({ address, port, link }: Parameters<typeof UdpSocket.open>[0], ifName: string): AnySocket {
    if (ifName !== NAME) throw new Error(`link ${ifName} is not there`);
    const text = formatAddress(address), isV4 = address.length === 4;
    const isThere = [...this.netlink.addresses.keys()].some((one) => one.startsWith(`${text}/`));
    if (!isThere) throw new SyscallError("bind", EADDRNOTAVAIL, `port ${port}`);
    if (!isV4 && link !== INDEX) throw new Error(`link ${link} is not there`);
    const read = ({ ip, data }: Frame) => ({ bytes: data.slice(UDP6_BYTES), from: ip.slice(8, 24) });
    const deliver = (to: Uint8Array, bytes: Uint8Array) =>
      isV4 ? this.sendUdp4(text, to, bytes) : this.sendUdp6(text, to, bytes);
    return this.opened(new SimulatedSocket(this.count++, [], deliver, read), isV4 ? "udp" : "udp6");
  }

  private sendUdp4(source: string, to: Uint8Array, bytes: Uint8Array): void {
    const message = decodeRequest(bytes)!;
    this.send(nameOf(message, source, formatAddress(to)), to, bytes);
    this.answer4(message);
  }

  private sendUdp6(source: string, to: Uint8Array, bytes: Uint8Array): void {
    const message = decode(bytes)!;
    const goal = formatAddress(to) === "ff02::1:2" ? "everybody" : formatAddress(to);
    this.send(`${names6[message.type]} from ${source} to ${goal}`, to, bytes);
    for (const reply of this.answer6(message)) this.arrive6(reply);
  }

  private send(what: string, to: Uint8Array, bytes: Uint8Array): void {
    if (this.broken !== undefined) throw this.broken;
    this.did.push(what);
    this.packets.push({ what, to, bytes });
  }

  private answer4(message: Message): void {
    for (const { bytes, copies } of this.server?.answers(message) ?? []) {
      for (let count = 0; count < copies; count++) this.arrive4(bytes);
    }
  }

  private sendFrame(link: number, frame: Uint8Array): void {
    const type = frame[12]! << 8 | frame[13]!,
      message = type === ETH_P_IP ? decodeRequest(frame.subarray(42)) : undefined;
    const kind = message === undefined ? names6[decode(frame.subarray(62))!.type] : kindOf(message);
    const [to, from] = [0, 6].map((at) => formatMac(frame.subarray(at, at + 6)));
    this.send(`link ${link}: ${kind} in the name of ${from} to ${to}`, frame.subarray(0, 6), frame);
  }

  private openEvents(groups: readonly number[]): KernelTransport {
    if (this.broken !== undefined) throw this.broken;
    this.did.push(`addresses are watched: groups ${groups.join(" and ")}`);
    return {
      fd: EVENTS_FD,
      opened: "raw",
      send: () => {},
      receive: () => {
        const next = this.changes.shift();
        if (next instanceof Error) throw next;
        return next;
      },
      close: () => void this.did.push("addresses are not watched"),
    };
  }

  [Symbol.dispose](): void {
    for (const spy of this.spies) spy.mockRestore();
  }
}
