/**
 * Programs of the host that listen at a port that a container asks for. Destination NAT comes before them: the container gets
 * their packets. The kernel is asked once for each family and protocol, and only where ports are asked for by an operator.
 * A kernel that does not tell has none.
 */
import type { PortClaim } from "../../contract/host-ports.ts";
import { listDirectory } from "../../ffi/files.ts";
import { type ListeningSocket, listListening } from "../../ffi/netlink/diag/listening.ts";
import { NETLINK_SOCK_DIAG, type NetlinkSocket, openNetlink } from "../../ffi/netlink/socket.ts";
import { ProcessFiles } from "../../ffi/process-files.ts";
import { FAMILIES, type Family, protocolNumbers } from "../../interop/iptables/rule.ts";
import { formatAddress, isSameBytes } from "../../net/address.ts";
import { isAmongAll, isLoopback6 } from "../packets/port-mappings/spec.ts";

/** One line for each port and address. */
export function hostListeners(claims: readonly PortClaim[]): string[] {
  const taken = new Map<string, number[]>();
  for (const protocol of new Set(claims.map((claim) => claim.protocol))) {
    const wanted = claims.filter((claim) => claim.protocol === protocol);
    for (const { address, ...listener } of listenersOf(protocol, wanted)) {
      if (!wanted.some((claim) => wouldTakeFrom(claim, { address, ...listener }))) continue;
      const host = address.length === 4 ? formatAddress(address) : `[${formatAddress(address)}]`;
      taken.getOrInsertComputed(`${listener.port}/${protocol} ${host}`, () => []).push(listener.inode);
    }
  }
  if (taken.size === 0) return [];
  const names = processesWith(new Set([...taken.values()].flat()));
  const byPort = [...taken].sort(([one], [other]) => parseInt(one) - parseInt(other));
  return byPort.map(([place, inodes]) => {
    const [port, host] = place.split(" "), programs = new Set(inodes.flatMap((inode) => names.get(inode) ?? []));
    const who = programs.size === 0 ? "a program of this host" : `${[...programs].join(" and ")} of this host`;
    return `host port ${port}: ${who} listens at ${host}, and the container gets what comes there`;
  });
}

/** A socket of IPv6 may be one of IPv4, too. */
function listenersOf(protocol: PortClaim["protocol"], claims: readonly PortClaim[]): ListeningSocket[] {
  const asked = FAMILIES.filter((family) => family === 6 || claims.some((claim) => claim.family === 4));
  let socket: NetlinkSocket | undefined;
  try {
    const opened = socket = openNetlink(NETLINK_SOCK_DIAG);
    return asked.flatMap((family) => listListening(opened, family, protocolNumbers[protocol]).map(plain));
  } catch {
    return [];
  } finally {
    socket?.close();
  }
}

const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** An address of IPv4 within IPv6 is that address. */
function plain(listener: ListeningSocket): ListeningSocket {
  const { address } = listener;
  const isMapped = address.length === 16 && MAPPED.every((byte, index) => byte === address[index]);
  return isMapped ? { ...listener, address: address.slice(12) } : listener;
}

/** Whether the container would get packets of the listener's. */
export function wouldTakeFrom({ family, port, at }: PortClaim, listener: Omit<ListeningSocket, "inode">): boolean {
  const { address, isV6Only } = listener, listensIn: Family = address.length === 4 ? 4 : 6;
  if (listener.port !== port || isLoopback6(at)) return false;
  if (address.every((byte) => byte === 0)) return listensIn === family || (listensIn === 6 && !isV6Only);
  return listensIn === family && (at === undefined ? isAmongAll(address) : isSameBytes(at, address));
}

/** By inode: `nginx (process 612)`. As far as /proc tells. */
function processesWith(inodes: ReadonlySet<number>): Map<number, string[]> {
  const found = new Map<number, string[]>();
  for (const pid of listDirectory("/proc").filter((name) => /^\d+$/.test(name)).map(Number)) {
    let files: ProcessFiles | undefined;
    try {
      files = new ProcessFiles(pid);
      for (const inode of inodes.intersection(files.sockets())) {
        const name = `${files.text("comm").trim()} (process ${pid})`;
        found.getOrInsertComputed(inode, () => []).push(name);
      }
    } catch {
      // It has ended, or is none of our business.
    } finally {
      files?.close();
    }
  }
  return found;
}
