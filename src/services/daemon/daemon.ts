/**
 * What a process that stays begins with, and how it waits. A daemon takes signals from a descriptor, and is given a
 * listener by a service manager or opens its own (listener.ts):
 *
 *     const daemon = Daemon.begin(["patchbay", "agent"]);
 *     const listener = Listener.handedOver(PATH, SOCK_STREAM) ?? Listener.open(PATH, SOCK_STREAM);
 *     if (!tellManager("READY=1")) warn(`listens on ${PATH}`);
 *     for (;;) {
 *       const { ready, mustEnd } = daemon.wait([listener.fd], LOOK_MS);
 *       if (mustEnd) break;
 *       …
 *     }
 *     tellManager("STOPPING=1");
 *     listener.close();
 */
import { withDescriptorAt } from "../../ffi/descriptors.ts";
import { environmentEntries, variable } from "../../ffi/environment.ts";
import { execute } from "../../ffi/spawn.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { poll, POLLIN } from "../../ffi/poll.ts";
import {
  blockSignals,
  endWith,
  isIgnored,
  openSignals,
  readSignals,
  SIGCHLD,
  SIGHUP,
  SIGINT,
  SIGTERM,
} from "../../ffi/signals.ts";
import { FIRST_HANDED_OVER, handOver, type Listener } from "./listener.ts";

/** The process id of a process that has blocked its signals, and has executed itself. */
const PREPARED = "PATCHBAY_PREPARED";
/** The process with which a daemon ends, which has started it. */
export const PARENT = "PATCHBAY_PARENT";

export interface Wakening {
  /** The descriptors that are ready, or whose other end is closed. */
  ready: ReadonlySet<number>;
  /** A signal has come that ends this process. */
  mustEnd: boolean;
}

export class Daemon {
  private constructor(private readonly signals: number) {}

  /**
   * Executes this program again with its signals blocked: only a process that begins so has no thread that gets them
   * (ffi/signals.ts). `argv` is what began this process. A signal that it was told to ignore stays ignored. `prepare` is
   * done before, once: what it resets, the runtime sets up anew.
   */
  static begin(argv: readonly string[], prepare?: () => void): Daemon {
    const isPrepared = variable(PREPARED) === String(process.pid);
    if (!isPrepared) prepare?.();
    const signals = [SIGTERM, SIGINT, SIGHUP].filter((signal) => !isIgnored(signal)).concat(SIGCHLD);
    if (!isPrepared) {
      blockSignals(signals);
      executeAgain("/proc/self/exe", argv, {});
    }
    const parent = variable(PARENT);
    if (parent !== undefined) endWith(Number(parent), SIGTERM);
    return new Daemon(openSignals(signals));
  }

  /** Waits until a descriptor is ready, a child has ended, a signal has come, or the time is over. */
  wait(fds: readonly number[], timeoutMs: number): Wakening {
    const ready = poll([this.signals, ...fds].map((fd) => ({ fd, events: POLLIN })), Math.max(0, timeoutMs));
    return { ready, mustEnd: readSignals(this.signals).some((signal) => signal !== SIGCHLD) };
  }

  /** This process goes on as the program, and listens on the same socket. */
  execute(program: string, argv: readonly string[], listener: Listener): never {
    return withDescriptorAt(
      FIRST_HANDED_OVER,
      listener.fd,
      () => executeAgain(program, argv, handOver(listener)),
    );
  }
}

function executeAgain(path: string, argv: readonly string[], variables: Record<string, string>): never {
  const added = { ...variables, [PREPARED]: String(process.pid) };
  const kept = environmentEntries().filter((entry) => !Object.hasOwn(added, fromUtf8(entry).split("=", 1)[0]!));
  const environment = [...kept, ...Object.entries(added).map(([name, value]) => utf8(`${name}=${value}`))];
  execute({ path, argv, environment });
}
