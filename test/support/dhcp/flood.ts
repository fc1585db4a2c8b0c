/** Floods a link with what DHCP clients there might be waiting for. The program is flooder.ts. */
import { join, resolve } from "node:path";
import type { Site } from "./link.ts";
import type { Running } from "./running.ts";
import type { Service } from "./service.ts";

/**
 * Answers have the number of the client's own exchange, and 600 options (300 of DHCPv6), all useless. "v4 for others" has
 * another client's hardware address in them. "of many" comes from another sender each time. "neighbours" asks and tells
 * about an address as hosts do that do not have it.
 */
export type FloodKind = "v4" | "v4 for others" | "v4 of many" | "v6" | "v6 of many" | "neighbours";

const PROGRAM = resolve(import.meta.dir, "flooder.ts");

let count = 0;

/** Floods until it is stopped. `address`: what neighbours tell about. */
export async function flood({ segment, namespace }: Site, kind: FloodKind, address = ""): Promise<Running> {
  const command = [process.execPath, PROGRAM, kind, address];
  const running = segment.start(namespace, command, { log: join(segment.folder, `flood-${++count}`) });
  await running.until(() => running.log().includes("floods"));
  return running;
}

/** How the service turns from one socket to the next, by strace(1). */
export interface Turns {
  /** Packets that one socket gave between two looks at all sockets: the most. */
  mostAtOnce(): number;
  /** Packets that one socket gave between two messages that were sent: the most. */
  mostPerMessage(): number;
}

export async function watchTurns({ segment, pid }: Service): Promise<Turns> {
  const log = join(segment.folder, `turns-${++count}`),
    calls = "trace=poll,ppoll,recvmsg,recvfrom,sendto,sendmsg,close";
  const tracer = segment.start(undefined, ["strace", "-p", String(pid), "-s", "0", "-e", calls], { log });
  await tracer.until(() => tracer.log().includes("attached"));
  const most = (ends: (call: string, counts: Map<string, number>, fd: string) => void): number => {
    const counts = new Map<string, number>();
    let found = 0;
    for (const [, call, fd = "", result] of tracer.log().matchAll(/^(\w+)\((\d+)?.* = (-?\d+)/gm)) {
      ends(call!, counts, fd);
      if (call === "close") counts.delete(fd);
      if (!call!.startsWith("recv") || Number(result) <= 0) continue;
      counts.set(fd, (counts.get(fd) ?? 0) + 1);
      found = Math.max(found, counts.get(fd)!);
    }
    return found;
  };
  return {
    mostAtOnce: () => most((call, counts) => call.endsWith("poll") && counts.clear()),
    mostPerMessage: () => most((call, counts, fd) => call.startsWith("send") && counts.delete(fd)),
  };
}
