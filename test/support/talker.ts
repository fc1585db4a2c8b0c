/**
 * The program behind traffic.ts, run inside a namespace: `serve tcp|udp` prints its port and serves until its stdin
 * ends; `ask tcp|udp ADDRESS PORT [SOURCE-PORT]` prints the answer, or fails after a second.
 */
export {};
const [mode, protocol, hostname, port, sourcePort] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
const plain = (address: string) => address.replace(/^::ffff:/, "");

if (mode === "serve") {
  const served = protocol === "udp"
    ? await Bun.udpSocket({
      hostname: "::",
      socket: { data: (socket, _bytes, from, address) => void socket.send(plain(address), from, address) },
    })
    : Bun.listen({
      hostname: "::",
      port: 0,
      socket: { data() {}, open: (socket) => void socket.end(plain(socket.remoteAddress)) },
    });
  console.log(served.port);
  for await (const _ of Bun.stdin.stream()) { /* until it ends */ }
  process.exit(0);
} else {
  setTimeout(() => process.exit(1), 1000);
  const answer = (bytes: Uint8Array) => {
    process.stdout.write(new TextDecoder().decode(bytes));
    process.exit(0);
  };
  if (protocol === "udp") {
    const any = hostname.includes(":") ? "::" : "0.0.0.0";
    const socket = await Bun.udpSocket({
      hostname: any,
      port: Number(sourcePort),
      socket: { data: (_socket, bytes) => answer(bytes) },
    });
    socket.send("who am I?", Number(port), hostname);
  } else {
    const failed = () => process.exit(1);
    Bun.connect({
      hostname,
      port: Number(port),
      socket: { data: (_socket, bytes) => answer(bytes), connectError: failed },
    })
      .catch(failed);
  }
}
