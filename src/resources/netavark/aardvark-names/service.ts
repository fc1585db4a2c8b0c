/** Whether aardvark-dns answers a container's questions, for operators. Nothing is changed, and nothing awaited. */
import { type ListeningSocket, listListening } from "../../../ffi/netlink/diag/listening.ts";
import { NETLINK_SOCK_DIAG, openNetlink } from "../../../ffi/netlink/socket.ts";
import type { OtherProcess } from "../../../ffi/other-process.ts";
import { ProcessFiles } from "../../../ffi/process-files.ts";
import { isSameBytes, parseAddress } from "../../../net/address.ts";
import { findDaemon, isHere, NAME } from "./daemon.ts";
import type { NamesSpec } from "./spec.ts";

const UDP = 17;
const PATIENCE_MS = 1000, PAUSE_MS = 5;

/** One line for each reason why not. */
export function whyUnanswered(spec: NamesSpec): string[] {
  const found = findDaemon(spec, performance.now());
  if (found === undefined) return [`${NAME} does not run`];
  try {
    const who = `${NAME} (process ${found.pid})`;
    if (!isHere(found)) return [`${who} is in another network namespace`];
    return silentGateways(spec, found).map((gateway) => `${who} does not listen at ${gateway}, port ${spec.port}`);
  } finally {
    found.close();
  }
}

/** Waits for a daemon that was told of changes. It does not say when it has read them, and goes on where it cannot listen. */
export function awaitAnswers(spec: NamesSpec): void {
  for (const deadline = performance.now() + PATIENCE_MS; whyUnanswered(spec).length > 0; Bun.sleepSync(PAUSE_MS)) {
    if (performance.now() < deadline) continue;
    throw new Error(`${NAME} still does not; stop what listens there, end ${NAME}, and 'patchbay repair' starts it`);
  }
}

/** Empty where the kernel does not tell. */
function silentGateways({ networks, port }: NamesSpec, { pid }: OtherProcess): string[] {
  const gateways = networks.flatMap((network) => network.gateways);
  try {
    const sockets = socketsOf(pid), listening = listeningAt(port).filter(({ inode }) => sockets.has(inode));
    return gateways.filter((gateway) =>
      !listening.some(({ address }) => isSameBytes(address, parseAddress(gateway)!))
    );
  } catch {
    return [];
  }
}

function listeningAt(port: number): ListeningSocket[] {
  const socket = openNetlink(NETLINK_SOCK_DIAG);
  try {
    return ([4, 6] as const).flatMap((family) => listListening(socket, family, UDP)).filter((one) =>
      one.port === port
    );
  } finally {
    socket.close();
  }
}

function socketsOf(pid: number): Set<number> {
  const files = new ProcessFiles(pid);
  try {
    return files.sockets();
  } finally {
    files.close();
  }
}
