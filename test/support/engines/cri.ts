/**
 * What kubelets say to containerd: a few calls of the Container Runtime Interface (runtime.v1), gRPC by a socket of the
 * file system. Messages are encoded by hand, because a test needs six calls of the interface, and of each a few fields.
 */
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";

/** A field of a message by its number: a text, a number, a message, or several of these. */
type Field = string | number | Message | readonly Field[];
interface Message {
  readonly [number: number]: Field;
}

export interface PortMapping {
  hostPort: number;
  containerPort: number;
}

export interface Pod {
  name: string;
  cgroupParent: string;
  ports?: readonly PortMapping[];
}

export interface PodStatus {
  isReady: boolean;
  ips: string[];
}

/** Refused by the server; the message is its own. */
export class CriError extends Error {}

/** Only ends calls that hang. */
const CALL_TIMEOUT_MS = 120_000;

export class Cri {
  /** The socket, as this process finds it. */
  constructor(private readonly socket: string) {}

  /** Returns the sandbox's id. */
  async runPodSandbox(pod: Pod): Promise<string> {
    const answer = await this.#call("RunPodSandbox", { 1: sandboxConfig(pod) });
    return textsOf(answer, 1)[0]!;
  }

  async stopPodSandbox(id: string): Promise<void> {
    await this.#call("StopPodSandbox", { 1: id });
  }

  async removePodSandbox(id: string): Promise<void> {
    await this.#call("RemovePodSandbox", { 1: id });
  }

  async podSandboxStatus(id: string): Promise<PodStatus> {
    const [status] = messagesOf(await this.#call("PodSandboxStatus", { 1: id }), 1);
    const network = messagesOf(status!, 5)[0] ?? [];
    const ips = [...textsOf(network, 1), ...messagesOf(network, 2).flatMap((one) => textsOf(one, 1))];
    // A number that is 0 is not sent, and 0 is SANDBOX_READY.
    return { isReady: !status!.some(({ number, value }) => number === 3 && value === 1), ips };
  }

  async sandboxIds(): Promise<string[]> {
    return messagesOf(await this.#call("ListPodSandbox", {}), 1).flatMap((one) => textsOf(one, 1));
  }

  /** Conditions that do not hold, with containerd's reason; one is its network. */
  async notReady(): Promise<string[]> {
    const [status] = messagesOf(await this.#call("Status", {}), 1);
    return messagesOf(status ?? [], 1).filter((one) => !one.some(({ number, value }) => number === 2 && value === 1))
      .map((one) => [1, 3, 4].flatMap((number) => textsOf(one, number)).join(": "));
  }

  #call(method: string, request: Message): Promise<Decoded[]> {
    const session = connectHttp2("http://containerd", { createConnection: () => connect(this.socket) });
    return new Promise<Decoded[]>((resolve, reject) => {
      const fail = (why: string) => reject(new CriError(`${method}: ${why}`));
      session.on("error", (error) => fail(error.message));
      const stream = session.request({
        ":method": "POST",
        ":path": `/runtime.v1.RuntimeService/${method}`,
        "content-type": "application/grpc",
        te: "trailers",
      });
      const parts: Buffer[] = [];
      let status: string | undefined, message = "";
      // An error that comes at once has its status among the headers.
      const take = (headers: Record<string, unknown>) => {
        if (headers["grpc-status"] === undefined) return;
        status = String(headers["grpc-status"]);
        message = decodeURIComponent(String(headers["grpc-message"] ?? ""));
      };
      stream.on("response", take);
      stream.on("trailers", take);
      stream.on("data", (part: Buffer) => parts.push(part));
      stream.on("error", (error) => fail(error.message));
      stream.on("close", () => {
        if (status !== "0") return fail(status === undefined ? "ended without a status" : message);
        // One byte for compression, four for the length.
        resolve(decoded(Buffer.concat(parts).subarray(5)));
      });
      stream.setTimeout(CALL_TIMEOUT_MS, () => stream.destroy(new Error("no answer")));
      const body = encoded(request), head = Buffer.alloc(5);
      head.writeUInt32BE(body.length, 1);
      stream.end(Buffer.concat([head, body]));
    }).finally(() => session.destroy());
  }
}

function sandboxConfig({ name, cgroupParent, ports = [] }: Pod): Message {
  return {
    1: { 1: name, 2: `uid-${name}`, 3: "default" },
    2: name,
    5: ports.map(({ hostPort, containerPort }) => ({ 2: containerPort, 3: hostPort })),
    8: { 1: cgroupParent },
  };
}

function encoded(message: Message): Buffer {
  const parts: Buffer[] = [];
  for (const [number, value] of Object.entries(message) as unknown as [string, Field][]) {
    for (const one of Array.isArray(value) ? value as readonly Field[] : [value]) {
      if (typeof one === "number") {
        parts.push(varint(Number(number) * 8), varint(one));
      } else {
        const bytes = typeof one === "string" ? Buffer.from(one) : encoded(one as Message);
        parts.push(varint(Number(number) * 8 + 2), varint(bytes.length), bytes);
      }
    }
  }
  return Buffer.concat(parts);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  return Buffer.from([...bytes, value]);
}

interface Decoded {
  number: number;
  value: number | Buffer;
}

function decoded(bytes: Buffer): Decoded[] {
  const fields: Decoded[] = [];
  let at = 0;
  const next = () => {
    let value = 0;
    for (let unit = 1;; unit *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new CriError("an answer that ends within a number");
      value += (byte % 128) * unit;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = next(), number = Math.floor(tag / 8);
    if (tag % 8 === 0) fields.push({ number, value: next() });
    else if (tag % 8 === 2) {
      const length = next();
      fields.push({ number, value: bytes.subarray(at, at += length) });
    } else throw new CriError(`an answer with a field of wire type ${tag % 8}`);
  }
  return fields;
}

function bytesOf(fields: readonly Decoded[], wanted: number): Buffer[] {
  return fields.flatMap(({ number, value }) => number === wanted && typeof value !== "number" ? [value] : []);
}

function textsOf(fields: readonly Decoded[], wanted: number): string[] {
  return bytesOf(fields, wanted).map((bytes) => bytes.toString()).filter((text) => text !== "");
}

function messagesOf(fields: readonly Decoded[], wanted: number): Decoded[][] {
  return bytesOf(fields, wanted).map(decoded);
}
