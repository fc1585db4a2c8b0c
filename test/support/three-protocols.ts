/**
 * Asking and answering by TCP, UDP and SCTP. Each socket is opened before the function returns, so that it belongs to the
 * network namespace in which the thread is then.
 */
import type { Protocol, Question } from "./traffic.ts";

const plain = (address: string) => address.replace(/^::ffff:/, "");
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

let sctp: typeof import("./sctp.ts") | undefined;

/** Before SCTP is used; most tests do not use it. */
export async function loadSctp(): Promise<void> {
  sctp = await import("./sctp.ts");
}

/** The servers answer with the address that they see, on a port that 0 leaves to the kernel. */
export function serveTcp(port: number): number {
  const socket = {
    data() {},
    open: (socket: Bun.Socket<undefined>) => void socket.end(plain(socket.remoteAddress)),
  };
  return Bun.listen({ hostname: "::", port, socket }).port;
}

/** `heard` gets the text of every datagram. */
export async function serveUdp(port: number, heard: (message: string) => void = () => {}): Promise<number> {
  const data = (socket: Bun.udp.Socket<"buffer">, bytes: Uint8Array, from: number, address: string) => {
    heard(text(bytes));
    socket.send(plain(address), from, address);
  };
  return (await Bun.udpSocket({ hostname: "::", port, socket: { data } })).port;
}

export function serveSctp(port: number): void {
  sctp!.serveSctp(port, (address) => address);
}

/** All protocols on one port. */
export async function serveAll(protocols: readonly Protocol[], wanted: number): Promise<number> {
  let port = wanted;
  if (protocols.includes("tcp")) port = serveTcp(port);
  if (protocols.includes("udp")) port = await serveUdp(port);
  if (protocols.includes("sctp")) serveSctp(port);
  return port;
}

/** Calls back with the answer, or undefined when there will be none. Packets from elsewhere do not count. */
export function ask({ protocol, address, port, sourcePort = 0 }: Question, tell: (answer?: string) => void): void {
  if (protocol === "sctp") return sctp!.askSctp(address, port, sourcePort, tell);
  if (protocol === "tcp") {
    const socket = { data: (_socket: unknown, bytes: Uint8Array) => tell(text(bytes)), connectError: () => tell() };
    return void Bun.connect({ hostname: address, port, socket }).catch(() => tell());
  }
  const received = (_socket: unknown, bytes: Uint8Array, from: number, sender: string) => {
    if (from === port && plain(sender) === address) tell(text(bytes));
  };
  const hostname = address.includes(":") ? "::" : "0.0.0.0";
  Bun.udpSocket({ hostname, port: sourcePort, socket: { data: received, error: () => tell() } })
    .then((socket) => void socket.send("who am I?", port, address)).catch(() => tell());
}
