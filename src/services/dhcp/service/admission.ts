/**
 * Who may ask the service. The service enters network namespaces, sets addresses and sends packets for its clients, so it
 * serves those who can do that by themselves: root in its own user namespace, with the capabilities for it. A container's root
 * that has been given the socket has other namespaces or fewer capabilities.
 *
 * Unlike a resident it compares nothing else: engines call the plugin from mount and process namespaces of their own, and
 * the container's namespace comes as a descriptor.
 */
import { errorText } from "../../../cni/error.ts";
import { EMFILE, ENFILE, ENOMEM, isErrno } from "../../../ffi/errno.ts";
import { Peer, peerOf } from "../../../ffi/socket/peer.ts";
import { ProcessFiles } from "../../../ffi/process-files.ts";

export interface Refusal {
  text: string;
  /** What to do. */
  hint: string;
}

const NEEDED = { CAP_NET_ADMIN: 12n, CAP_SYS_ADMIN: 21n };

/** Undefined when who has connected may ask. Throws SyscallError when the host has no room for a look at it. */
export function whyRefused(connection: number): Refusal | undefined {
  const { pid, uid } = peerOf(connection) ?? { pid: 0, uid: -1 };
  if (uid !== 0 && uid !== process.geteuid!()) {
    return { text: `the DHCP service serves root, and not user ${uid}`, hint: "call it as root" };
  }
  if (pid === 0) {
    return {
      text: "the DHCP service does not see the process that asks: it has a process namespace of its own",
      hint: "start the service in the process namespace of the container engine (hostPID: true, --pid=host)",
    };
  }
  try {
    const peer = Peer.of(connection);
    try {
      const refusal = whyPowerless(peer);
      return peer.hasEnded ? { text: `process ${pid} has ended`, hint: "" } : refusal;
    } finally {
      peer.close();
    }
  } catch (error) {
    if (isErrno(error, EMFILE, ENFILE, ENOMEM)) throw error;
    return {
      text: `the DHCP service cannot look at process ${pid}, which asks: ${errorText(error)}`,
      hint: "the service needs /proc, and CAP_SYS_PTRACE",
    };
  }
}

let ownUserNamespace: string | undefined;

function whyPowerless({ pid, files }: Peer): Refusal | undefined {
  if (files.link("ns/user") !== (ownUserNamespace ??= readOwnUserNamespace())) {
    return {
      text: `the DHCP service serves its own user namespace, and process ${pid} is in another one`,
      hint: "call the plugin where the service was started, or start a service of its own there",
    };
  }
  const effective = BigInt(`0x${files.value("CapEff")}`);
  const missing = Object.entries(NEEDED).filter(([, bit]) => (effective >> bit & 1n) === 0n).map(([name]) => name);
  if (missing.length === 0) return undefined;
  return {
    text: `process ${pid} does not have ${missing.join(" and ")}, which the DHCP service asks of its callers`,
    hint: "call the plugin with the capabilities of the container engine",
  };
}

function readOwnUserNamespace(): string {
  const files = new ProcessFiles("self");
  try {
    return files.link("ns/user");
  } finally {
    files.close();
  }
}
