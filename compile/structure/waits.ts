/**
 * Loops and calls that could go on for ever. Each file that has some says here how many, and what ends them or why nothing
 * should: a call that never ends keeps a container from starting or going, and every lock that it holds from others.
 *
 * Pauses are listed, too: where somebody tells, waiting is for that. Loops with a condition are not found. Waiting with a limit: src/ffi/poll.ts; lock.ts, patience.ts and run-program.ts in src/process.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filesBelow, type Source } from "./sources.ts";

const ENDLESS = [
  // Loops without a condition.
  /\bfor \([^;]*;\s*;/g,
  /\bwhile \((?:!0|true|1)\)/g,
  // Waiting for a descriptor, a child or a lock without a limit.
  /\b(?:poll|epoll_wait)\((?:[^()]|\([^()]*\))*-1\s*\)/g,
  /\bwaitFor\(\w/g,
  /\bF_OFD_SETLKW\b/g,
  /\bCALL4?\((?:ppoll|wait4|recvfrom)\b/g,
];

const permitted: Readonly<Record<string, readonly [count: number, why: string]>> = {
  // They end with what they read, or after so many attempts.
  "src/services/dhcp/names.ts": [1, "ends with the bytes: pointers only lead back"],
  "src/engine/ledger/open-ledger.ts": [1, "100 attempts"],
  "src/ffi/environment.ts": [1, "ends with the block"],
  "src/ffi/libc.ts": [1, "repeats a call that a signal has interrupted"],
  "src/ffi/netlink/nftables/batch.ts": [1, "1000 attempts"],
  "src/ffi/signals.ts": [1, "reads what is there"],
  "src/process/trusted-executable.ts": [1, "6 attempts, a second apart"],
  "src/ipam/store.ts": [2, "100 attempts"],
  "src/interop/iptables/legacy-table.ts": [1, "10 attempts"],
  "src/resources/link/shared/usable.ts": [1, "a name of many is free"],

  // They have a deadline.
  "src/services/dhcp/ask.ts": [1, "patience of the caller"],
  "src/services/dhcp/service/daemon.ts": [1, "2 s for the journal"],
  "src/ffi/socket/socket.ts": [1, "SO_SNDTIMEO; repeats what a signal has interrupted"],
  "src/interop/firewalld/bus.ts": [1, "one deadline for all that a verb reads and writes"],
  "src/interop/ovsdb/connection.ts": [
    2,
    "10 s for all answers of a verb; the caller's patience for what Open vSwitch does",
  ],
  "src/resources/netavark/aardvark-names/daemon.ts": [1, "5 s, then an error that names the process"],
  "src/plugins/ipam/dhcp/dhcp.ts": [2, "each question has a deadline; the pages of a list end"],
  "src/frontends/resident/status.ts": [1, "3 s"],

  // The kernel answers, or a child of ours that waits for nobody else.
  "src/ffi/files.ts": [4, "reads to the end of a file; the engine's pipes are the engine's to read; 100 attempts"],
  "src/ffi/netlink/route/remove-link.ts": [1, "the child waits for the kernel, as the request itself would"],
  "src/ffi/netlink/transport.ts": [
    2,
    "the kernel queues its answer before the request returns, and says when it was lost",
  ],
  "src/ffi/socket/packet.ts": [1, "reads what is there"],
  "src/ffi/reaper.ts": [1, "the child ends at once"],
  "src/process/run-program.ts": [
    4,
    "tools have 2 minutes; a plugin has the engine's, the specification sets no limit",
  ],
  "src/ffi/spawn.ts": [2, "takes notice of those that have ended; waitFor itself"],
  "src/process/interruption.ts": [1, "stdin and stdout are the caller's to write and to read; a signal ends it"],
  "src/native/launch.h": [
    7,
    "a call in a resident takes as long as a call; the kernel tells when the worker dies; one is a look",
  ],
  "src/native/linux.h": [2, "the engine's pipes are the engine's to read; ending"],
  "src/native/reaper.c": [1, "the kernel's answer"],

  // What stays waits for work.
  "src/conformance/own-process-namespace.ts": [1, "the run, in which every call has a limit"],
  "src/services/dhcp/service/service.ts": [1, "the service, until a signal"],
  "src/ffi/poll.ts": [1, "a worker, until a call or its parent's end"],
  "src/frontends/netavark/program/firewall-reload.ts": [1, "the service, until it is killed"],
  "src/frontends/resident/serve.ts": [3, "the resident, until a signal"],
};

const PAUSES = [/\b(?:sleepSync|usleep)\(|\bCALL2\(nanosleep\b/g];

/** What is looked at again after a pause, because nobody tells. */
const pauses: Readonly<Record<string, readonly [count: number, why: string]>> = {
  "src/process/lock.ts": [1, "a lock: the kernel's own wait for one has no end"],
  "src/process/trusted-executable.ts": [1, "a program's file that somebody still writes"],
  "src/ffi/netlink/route/remove-link.ts": [1, "a link that the kernel is removing"],
  "src/plugins/ipam/dhcp/dhcp.ts": [1, "the DHCP service, or one that has its journal, starts or ends"],
  "src/services/dhcp/service/daemon.ts": [1, "the journal of a service that ends"],
  "src/resources/netavark/aardvark-names/service.ts": [1, "aardvark-dns, until it listens"],
  "src/frontends/resident/status.ts": [1, "a resident that starts"],
  "src/frontends/resident/serve.ts": [2, "another resident that takes the place, or gives it up"],
  "src/frontends/library/in-process.ts": [1, "the thread's way out of a container, which the kernel refuses"],
  "src/native/holder.c": [1, "a socket whose last close nobody shall wait for"],
  "src/conformance/leftovers.ts": [1, "what the kernel removes a moment later"],
};

/** What is more than permitted, and what is permitted to nobody any more. */
export function waits(root: string, sources: readonly Source[]): string[] {
  const native = filesBelow(root, "src/native", /\.[ch]$/);
  const texts = [
    ...sources.map(({ path, code }) => [path, code] as const),
    ...native.map((path) => [path, readFileSync(join(root, path), "utf8")] as const),
  ];
  return [
    ...unlisted(texts, ENDLESS, permitted, "waits or loops without end"),
    ...unlisted(texts, PAUSES, pauses, "pauses"),
  ];
}

function unlisted(
  texts: readonly (readonly [path: string, text: string])[],
  patterns: readonly RegExp[],
  list: Readonly<Record<string, readonly [count: number, why: string]>>,
  does: string,
): string[] {
  return texts.flatMap(([path, text]) => {
    const found = patterns.flatMap((pattern) => text.match(pattern) ?? []), [count] = list[path] ?? [0];
    if (found.length === count) return [];
    if (found.length < count) {
      return [`compile/structure/waits.ts: permits ${count} in ${path}, which has ${found.length}`];
    }
    return [
      `${path}: ${does}: ${found.join(", ")}; limit it, or permit it in compile/structure/waits.ts`,
    ];
  });
}
