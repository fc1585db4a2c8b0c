/**
 * A new worker attaches and detaches for practice while nobody calls. So what runs in every call has its machine code and
 * its memory before the first calls of a host, which would pay for that otherwise.
 *
 * Nothing can stay of it: the host and the container are network namespaces of its own, ledgers and leases are in a file
 * system that ends with its descriptor. Threads of the runtime that begin meanwhile are in that host until they end, some
 * seconds after their last work; it has no links by then.
 */
import { endCall, ownProcessId, takeCall } from "../../process/calls.ts";
import { hasMemoryLimit } from "../../ffi/control-group.ts";
import { keepUsedPages } from "../../ffi/kept-pages.ts";
import { openDetachedTmpfs } from "../../ffi/detached-tmpfs.ts";
import { replaceWithLink } from "../../ffi/directory-entries.ts";
import { takeEnvironment } from "../../ffi/environment.ts";
import { closeFile, makeDirectories } from "../../ffi/files.ts";
import { keepNothingDuring } from "../../process/kept-open.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { inNetns, makeNetns, openOwnNetns } from "../../ffi/netns.ts";
import { tryWriteSysctl } from "../../ffi/sysctl.ts";
import { forgetEnded } from "../../ffi/spawn.ts";
import type { Streams } from "./streams.ts";

/** Runs a call by its name, as for a caller. Returns the exit status. */
type Run = (argv: readonly string[]) => number;

interface Stage {
  home: number;
  host: number;
  container: number;
  files: number;
}

export class Rehearsal {
  private stage: Stage | undefined;

  constructor(private left: number, private readonly streams: Streams, private readonly run: Run) {}

  get isUseful(): boolean {
    return this.left > 0;
  }

  /** What a kernel does not have, or does not permit, ends it: calls are served all the same. */
  round(): void {
    this.left--;
    try {
      const stage = this.stage ??= openStage();
      keepNothingDuring(() => inNetns(stage.host, stage.home, () => this.attachAndDetach(stage)));
    } catch {
      this.left = 0;
    }
    if (this.left === 0) this.end();
  }

  private attachAndDetach(stage: Stage): void {
    const conf = confOf(stage), result = this.call("ADD", conf, stage);
    this.call("DEL", { ...conf, prevResult: JSON.parse(result) }, stage);
  }

  /** Returns what the call prints. */
  private call(command: string, conf: object, { container, files }: Stage): string {
    const variables = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: "rehearsal",
      CNI_NETNS: pathOf(container),
      CNI_IFNAME: "eth0",
      CNI_PATH: `${pathOf(files)}/bin`,
      PATCHBAY_STATE_DIR: `${pathOf(files)}/state`,
    };
    this.streams.giveStdin(utf8(JSON.stringify(conf)));
    takeEnvironment(utf8(Object.entries(variables).map((pair) => `${pair.join("=")}\0`).join("")));
    takeCall({ id: ownProcessId, isGone: () => false });
    try {
      if (this.run(["ptp"]) !== 0) throw new Error(`${command} fails`);
      return fromUtf8(this.streams.written(1));
    } finally {
      this.streams.reset(false);
      endCall();
      forgetEnded();
    }
  }

  private end(): void {
    for (const fd of Object.values(this.stage ?? {})) closeFile(fd);
    this.stage = undefined;
    Bun.gc(true);
    // Where the group's memory is limited, it would have less for everything else.
    if (!hasMemoryLimit()) keepUsedPages();
  }
}

function openStage(): Stage {
  const opened: number[] = [], keep = (fd: number) => (opened.push(fd), fd);
  try {
    const files = keep(openDetachedTmpfs());
    for (const name of ["bin", "state", "leases"]) makeDirectories(`${pathOf(files)}/${name}`, 0o700);
    replaceWithLink(`${pathOf(files)}/bin/host-local`, "/proc/self/exe");
    const home = keep(openOwnNetns()), host = keep(makeNetns()), container = keep(makeNetns());
    for (const netns of [host, container]) inNetns(netns, home, withoutIpv6);
    return { files, home, host, container };
  } catch (error) {
    for (const fd of opened) closeFile(fd);
    throw error;
  }
}

/** Older kernels log each link that is ready for IPv6. */
function withoutIpv6(): void {
  tryWriteSysctl("net/ipv6/conf/default/disable_ipv6", "1");
}

function pathOf(fd: number): string {
  return `/proc/self/fd/${fd}`;
}

/** Not a bridge: the kernel logs whenever one gets or loses a port, in every namespace. */
function confOf({ files }: Stage) {
  return {
    cniVersion: "1.0.0",
    name: "rehearsal",
    type: "ptp",
    ipam: {
      type: "host-local",
      dataDir: `${pathOf(files)}/leases`,
      ranges: [[{ subnet: "10.1.0.0/24" }]],
      routes: [{ dst: "0.0.0.0/0" }],
    },
  };
}
