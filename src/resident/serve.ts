/**
 * `patchbay serve`: listens, and keeps workers that accept from the same socket. It does nothing else, so that it does
 * not fail. It repairs what others break: workers that end, a socket that is removed, a program file that is replaced.
 */
import { errorText } from "../cni/error.ts";
import { tellManager } from "../ffi/notify.ts";
import { poll, POLLIN } from "../ffi/poll.ts";
import {
  blockSignals,
  isIgnored,
  openSignals,
  readSignals,
  SIGCHLD,
  SIGHUP,
  SIGINT,
  SIGTERM,
} from "../ffi/signals.ts";
import { forgetEnded } from "../ffi/spawn.ts";
import { warn } from "../ffi/warn.ts";
import { Watch } from "../ffi/watch.ts";
import { LeaseService } from "./lease-service.ts";
import { OwnFile } from "./own-file.ts";
import { become, takeHandedOver } from "./service-manager.ts";
import { ServingSocket, SOCKET_DIRECTORY, SOCKET_PATH, whoListens } from "./socket.ts";
import { Workers } from "./workers.ts";

/** How often the parent looks by itself. It learns at once what others change in the directories. */
const LOOK_MS = 5000;
/** The pause after a failed attempt to listen, and between two looks while workers end. */
const AGAIN_MS = 1000;
/** A pause for whoever removes the socket, and may be about to remove its directory. */
const COURTESY_MS = 20;

/** Returns the exit status. */
export function serve(workers: number, holdsLeases: boolean): number {
  const handedOver = takeHandedOver(), socket = handedOver?.socket ?? ServingSocket.listen();
  const signals = [SIGTERM, SIGINT, SIGHUP].filter((signal) => !isIgnored(signal)).concat(SIGCHLD);
  if (!handedOver?.isPrepared) {
    // Only a process that begins with them blocked has no thread that gets them (ffi/signals.ts).
    blockSignals(signals);
    try {
      become("/proc/self/exe", socket, serveArguments(workers, holdsLeases));
    } finally {
      socket.close();
    }
  }
  return new Parent(socket, workers, holdsLeases, signals).run();
}

function serveArguments(workers: number, holdsLeases: boolean): string[] {
  return [`--workers=${workers}`, ...holdsLeases ? ["--dhcp"] : []];
}

class Parent {
  private readonly workers: Workers;
  private readonly watch = new Watch();
  private readonly file = new OwnFile();
  private readonly signals: number;
  private obstacle = "";

  private readonly leases: LeaseService;

  constructor(
    private socket: ServingSocket,
    private readonly count: number,
    private readonly holdsLeases: boolean,
    signals: readonly number[],
  ) {
    this.workers = new Workers(count);
    this.leases = new LeaseService(holdsLeases);
    this.signals = openSignals(signals);
    this.workers.serve(socket.fd);
  }

  run(): number {
    this.leases.startIfMissing();
    this.workers.startMissing();
    // A manager says by itself that the service has begun.
    if (!tellManager("READY=1")) {
      warn(`the resident serves calls on ${SOCKET_PATH} (workers: ${this.count})`);
    }
    for (;;) {
      this.watch.entries(this.file.directory);
      this.watchSocket();
      const end = this.whyEnd();
      if (end !== undefined) {
        warn(end);
        return this.end();
      }
      const isListening = this.keepListening();
      const pauseMs = isListening ? Math.min(LOOK_MS, this.workers.startMissing()) : AGAIN_MS;
      if (this.waitFor(Math.min(pauseMs, this.leases.startIfMissing()))) return this.end();
    }
  }

  /** Waits until something happens. Returns whether a signal ends this process. */
  private waitFor(pauseMs: number): boolean {
    const ready = poll([this.signals, this.watch.fd].map((fd) => ({ fd, events: POLLIN })), Math.ceil(pauseMs));
    if (ready.has(this.watch.fd)) {
      this.watch.forgetChanges();
      this.file.forgetRefused();
    }
    const hasBeenTold = readSignals(this.signals).some((signal) => signal !== SIGCHLD);
    const { ended } = forgetEnded();
    this.workers.forget(ended);
    this.leases.forget(ended);
    return hasBeenTold;
  }

  /** The entries of the directory are not watched: each call makes some (ledgers). */
  private watchSocket(): void {
    this.watch.itself(SOCKET_DIRECTORY);
    this.watch.itself(SOCKET_PATH);
  }

  private whyEnd(): string | undefined {
    if (this.file.isGone((program) => this.becomeNewFile(program))) {
      return `${this.file.path} is gone; the resident ends, and calls run by themselves`;
    }
    if (this.socket.isInPlace()) return undefined;
    const other = whoListens();
    return other === undefined ? undefined : `process ${other} listens on ${SOCKET_PATH} now; this resident ends`;
  }

  /** The workers end after their calls; callers of the new build wait at the socket meanwhile. */
  private becomeNewFile(program: string): never {
    // The new build starts a service of its own.
    this.leases.end();
    return become(program, this.socket, serveArguments(this.count, this.holdsLeases));
  }

  /** Returns whether launchers find this resident. */
  private keepListening(): boolean {
    if (this.socket.isInPlace()) return true;
    Bun.sleepSync(COURTESY_MS);
    try {
      const before = this.socket;
      this.socket = ServingSocket.listen();
      this.watchSocket();
      this.workers.serve(this.socket.fd);
      before.close();
      warn(`${SOCKET_PATH} was removed; the resident listens on a new one`);
      this.obstacle = "";
      return true;
    } catch (error) {
      const obstacle = errorText(error);
      if (obstacle !== this.obstacle) warn(`cannot listen: ${obstacle}`);
      this.obstacle = obstacle;
      return false;
    }
  }

  /** No new calls; those that run end. The second signal does not wait for them: each worker ends after its call. */
  private end(): number {
    tellManager("STOPPING=1");
    this.socket.close();
    this.leases.end();
    this.workers.retire();
    while (forgetEnded().areRunning) {
      poll([{ fd: this.signals, events: POLLIN }], AGAIN_MS);
      if (readSignals(this.signals).some((signal) => signal !== SIGCHLD)) return 1;
    }
    return 0;
  }
}
