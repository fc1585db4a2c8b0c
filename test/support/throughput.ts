/** TCP throughput between a container and its machine, measured by the receiver. */
import type { Container, Machine } from "./machine.ts";

/**
 * `serve` prints its port and serves until its stdin ends. `receive|send ADDRESS PORT SKIP SECONDS` sends as fast as possible,
 * and prints the bytes a second that arrived within SECONDS, after the first SKIP bytes. The receiver measures.
 */
const flood = `
import contextlib, socket, sys, threading, time

def send(connection):
    while True: connection.sendall(bytes(65536))

def some(connection):
    received = connection.recv(65536)
    if not received: raise EOFError("the other side has ended")
    return len(received)

def measure(connection, skip, seconds):
    while skip > 0: skip -= some(connection)
    count, begun = 0, time.monotonic()
    while time.monotonic() - begun < seconds: count += some(connection)
    return count / (time.monotonic() - begun)

def serve(connection):
    verb, skip, seconds = connection.makefile("rb", 0).readline().split()
    if verb == b"receive": send(connection)
    connection.sendall(str(measure(connection, int(skip), float(seconds))).encode())
    connection.shutdown(socket.SHUT_WR)
    # What is not read would take the answer along.
    while connection.recv(65536): pass

def serve_all(server):
    while True:
        # Whoever has measured goes away.
        with contextlib.suppress(OSError, EOFError): serve(server.accept()[0])

if sys.argv[1] == "serve":
    server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=serve_all, args=[server], daemon=True).start()
    print(server.getsockname()[1], flush=True)
    sys.stdin.read()
else:
    verb, address, port, skip, seconds = sys.argv[1:]
    connection = socket.create_connection((address, int(port)))
    connection.sendall(f"{verb} {skip} {seconds}\\n".encode())
    if verb == "receive": print(measure(connection, int(skip), float(seconds)))
    else:
        threading.Thread(target=send, args=[connection], daemon=True).start()
        print(connection.makefile().read() or sys.exit("no measurement"))`;
const FLOOD = ["python3", "-c", flood];

export interface Measurement {
  /** The container's part. */
  verb: "receive" | "send";
  /** The machine's address. */
  address: string;
  /** First bytes that do not count: a bucket and the queues let them pass. */
  skip: number;
  windowMs: number;
}

export interface FloodServer extends AsyncDisposable {
  /** Returns bytes of payload a second. */
  measure(from: Container, measurement: Measurement): Promise<number>;
}

export async function floodServer(machine: Machine): Promise<FloodServer> {
  const process = machine.start([...FLOOD, "serve"]);
  const { value } = await process.stdout.getReader().read();
  const port = new TextDecoder().decode(value).trim();
  if (port === "") throw new Error(`no server: ${await process.stderr.text()}`);
  return {
    async measure(from, { verb, address, skip, windowMs }) {
      const command = [...FLOOD, verb, address, port, String(skip), String(windowMs / 1000)];
      const { code, stdout, stderr } = await machine.run(command, { in: from });
      if (code !== 0) throw new Error(`${verb} ${address}: exit ${code}: ${stderr}`);
      return Number(stdout);
    },
    async [Symbol.asyncDispose]() {
      await process.stdin.end();
      await process.exited;
    },
  };
}
