/**
 * The program behind traffic.ts, run inside a namespace. `serve PROTOCOLS PORT` prints its port, for 0 the kernel's choice
 * (which SCTP alone does not have), and serves until its stdin ends. `ask QUESTIONS` asks all at once, and prints the
 * answers, with null for what has none after a while; both are JSON.
 */
import { patienceMs } from "./patience.ts";
import type { Question } from "./traffic.ts";

const [mode, what, wantedPort] = process.argv.slice(2) as [string, string, string];
const plain = (address: string) => address.replace(/^::ffff:/, "");
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
/** Loaded on demand: most tests do not use SCTP. */
const sctp = () => import("./sctp.ts");

if (mode === "serve") {
  console.log(await serve(what.split(","), Number(wantedPort)));
  for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
  process.exit(0);
} else {
  const questions = JSON.parse(what) as Question[];
  const answers: (string | null)[] = questions.map(() => null);
  const open = new Set(questions.keys());
  const finish = () => {
    process.stdout.write(JSON.stringify(answers));
    process.exit(0);
  };
  setTimeout(finish, patienceMs());
  questions.forEach((question, index) =>
    ask(question, (answer) => {
      if (!open.delete(index)) return;
      answers[index] = answer ?? null;
      if (open.size === 0) finish();
    })
  );
}

/** All protocols on one port. */
async function serve(protocols: string[], wanted: number): Promise<number> {
  let port = wanted;
  if (protocols.includes("tcp")) {
    const socket = {
      data() {},
      open: (socket: Bun.Socket<undefined>) => void socket.end(plain(socket.remoteAddress)),
    };
    port = Bun.listen({ hostname: "::", port, socket }).port;
  }
  if (protocols.includes("udp")) {
    const socket = await Bun.udpSocket({
      hostname: "::",
      port,
      socket: { data: (socket, _bytes, from, address) => void socket.send(plain(address), from, address) },
    });
    port = socket.port;
  }
  if (protocols.includes("sctp")) (await sctp()).serveSctp(port, (address) => address);
  return port;
}

/** Calls back with the answer, or undefined when there will be none. Packets from elsewhere do not count. */
function ask({ protocol, address, port, sourcePort = 0 }: Question, tell: (answer?: string) => void): void {
  if (protocol === "sctp") return void sctp().then(({ askSctp }) => askSctp(address, port, sourcePort, tell));
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
