/** Whether aardvark-dns answers a container's questions, for operators. Nothing is changed. */
import { type ListeningSocket, listListening } from "../../../ffi/netlink/diag/listening.ts";
import { NETLINK_SOCK_DIAG, openNetlink } from "../../../ffi/netlink/socket.ts";
import type { OtherProcess } from "../../../ffi/other-process.ts";
import { ProcessFiles } from "../../../ffi/process-files.ts";
import { UDP } from "../../../net/ip-protocol.ts";
import { isSameBytes, parseAddress } from "../../../net/address.ts";
import { findDaemon, isHere, NAME } from "./daemon.ts";
import type { NamesSpec } from "./spec.ts";

const PATIENCE_MS = 5000, RELOADS_WITHIN_MS = 1000, PAUSE_MS = 5;

/** The process that was silent for too long: it is awaited once, not for each attachment. */
let silentPid: number | undefined;

/** One line for each reason why not. Whenever names change aardvark-dns listens anew, and for a moment not at all. */
export function whyUnanswered(spec: NamesSpec): string[] {
  const { reasons, silent } = lookOnce(spec);
  if (silent === undefined || silent === silentPid) return reasons;
  const later = lookUntilItListens(spec, RELOADS_WITHIN_MS);
  silentPid = later.silent;
  return later.reasons;
}

/** `silent`: the process that runs here, and does not listen. */
interface Look {
  reasons: string[];
  silent?: number;
}

function lookOnce(spec: NamesSpec): Look {
  const found = findDaemon(spec, performance.now());
  if (found === undefined) return { reasons: [`${NAME} does not run`] };
  try {
    const who = `${NAME} (process ${found.pid})`;
    if (!isHere(found)) return { reasons: [`${who} is in another network namespace`] };
    const silent = silentGateways(spec, found);
    if (silent.length === 0) return { reasons: [] };
    return {
      reasons: silent.map((gateway) => `${who} does not listen at ${gateway}, port ${spec.port}`),
      silent: found.pid,
    };
  } finally {
    found.close();
  }
}

/** Waits for a daemon that was told of changes. It does not say when it has read them, and goes on where it cannot listen. */
export function awaitAnswers(spec: NamesSpec): void {
  if (lookUntilItListens(spec, PATIENCE_MS).reasons.length === 0) return;
  throw new Error(`${NAME} still does not; stop what listens there, end ${NAME}, and 'patchbay repair' starts it`);
}

function lookUntilItListens(spec: NamesSpec, patienceMs: number): Look {
  const deadline = performance.now() + patienceMs;
  let look = lookOnce(spec);
  for (; look.reasons.length > 0 && performance.now() < deadline; look = lookOnce(spec)) Bun.sleepSync(PAUSE_MS);
  return look;
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
