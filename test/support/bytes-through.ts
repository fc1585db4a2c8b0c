/** More by TCP than fits into one packet, so that checksums, segments and MTUs have to be right. */
import type { Container, Machine } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

export interface Receiver {
  machine: Machine;
  at: Container;
  address: string;
}

const PORT = 7000;

/** How many of the bytes that `from` sends arrive. The sender gives up after `limitS` seconds in which none gets through. */
export async function bytesThrough(
  { machine, at, address }: Receiver,
  from: { machine: Machine; in: Container },
  count: number,
  limitS = 60,
): Promise<number> {
  const receive = `
import socket
listener = socket.create_server(("${address}", ${PORT}))
listener.settimeout(${limitS})
count = 0
try:
    connection, _ = listener.accept()
    connection.settimeout(${limitS})
    while data := connection.recv(65536): count += len(data)
except TimeoutError: pass
print(count)`;
  const receiving = machine.run(["python3", "-c", receive], { in: at });
  await untilTrue(async () => (await machine.sh("ss -Hltn", { in: at })).includes(`:${PORT} `), Boolean);
  const send = `
import socket
connection = socket.create_connection(("${address}", ${PORT}), ${limitS})
connection.sendall(bytes(${count}))`;
  await from.machine.run(["timeout", String(limitS), "python3", "-c", send], { in: from.in });
  return Number((await receiving).stdout);
}
