/**
 * The program behind throughput.ts, run inside a namespace: sends TCP as fast as possible and measures the rate.
 *
 * `serve` prints its port and serves until its stdin ends. `receive|send ADDRESS PORT SKIP WINDOW_MS` prints the bytes a
 * second that arrived within WINDOW_MS, after the first SKIP bytes. The receiver measures.
 */
import type { Socket } from "bun";

export {};

interface Side {
  /** Undefined until the client's first line has arrived. */
  meter?: Meter;
  sending: boolean;
  told: string;
}

const chunk = new Uint8Array(64 * 1024);

function flood(socket: Socket<Side>): void {
  if (!socket.data.sending) return;
  while (socket.write(chunk) === chunk.length) { /* until it is full */ }
}

class Meter {
  #bytes = 0;
  #since: { bytes: number; ms: number } | undefined;

  constructor(readonly skip: number, readonly windowMs: number) {}

  /** Returns bytes a second when the window is over. */
  count(bytes: number): number | undefined {
    this.#bytes += bytes;
    const ms = performance.now();
    if (this.#since === undefined) {
      if (this.#bytes >= this.skip) this.#since = { bytes: this.#bytes, ms };
      return undefined;
    }
    const elapsedMs = ms - this.#since.ms;
    return elapsedMs < this.windowMs ? undefined : ((this.#bytes - this.#since.bytes) / elapsedMs) * 1000;
  }
}

const [mode, hostname, port, skip, windowMs] = process.argv.slice(2) as [string, string, string, string, string];

if (mode === "serve") {
  const server = Bun.listen<Side>({
    hostname: "::",
    port: 0,
    socket: {
      open: (socket) => void (socket.data = { sending: false, told: "" }),
      drain: flood,
      data(socket, bytes) {
        const { data } = socket;
        if (data.meter !== undefined) {
          const rate = data.meter.count(bytes.length);
          if (rate !== undefined) socket.end(String(rate));
          return;
        }
        data.told += new TextDecoder().decode(bytes);
        const [, verb, skip, windowMs] = data.told.match(/^(\w+) (\d+) (\d+)\n/) ?? [];
        if (verb === undefined) return;
        data.meter = new Meter(Number(skip), Number(windowMs));
        data.sending = verb === "receive";
        flood(socket);
      },
    },
  });
  console.log(server.port);
  for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
  process.exit(0);
} else {
  const answer = (rate: number | string) => {
    console.log(rate);
    process.exit(0);
  };
  await Bun.connect<Side>({
    hostname,
    port: Number(port),
    data: { sending: false, told: "", meter: new Meter(Number(skip), Number(windowMs)) },
    socket: {
      open(socket) {
        socket.write(`${mode} ${skip} ${windowMs}\n`);
        socket.data.sending = mode === "send";
        flood(socket);
      },
      drain: flood,
      data(socket, bytes) {
        if (mode === "send") return answer(new TextDecoder().decode(bytes));
        const rate = socket.data.meter!.count(bytes.length);
        if (rate !== undefined) answer(rate);
      },
    },
  });
}
