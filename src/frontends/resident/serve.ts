/**
 * `patchbay serve`: listens, and keeps workers that accept from the same socket. It does nothing else, so that it does
 * not fail. It repairs what others break: workers that end, a socket that is removed, a program file that is replaced.
 */
import { errorText } from "../../cni/error.ts";
import { Daemon } from "../../services/daemon/daemon.ts";
import type { Listener } from "../../services/daemon/listener.ts";
import { Pause } from "../../services/daemon/pause.ts";
import { tellManager } from "../../services/daemon/notify.ts";
import { DIRECTORY_OF_ROOT, RESIDENT_BOARD, RESIDENT_SOCKET } from "../../process/state-directory.ts";
import { forgetEnded } from "../../ffi/spawn.ts";
import { mayStartResident, PERMISSION } from "../../process/resident-by-call.ts";
import { warn } from "../../process/warn.ts";
import { Watch } from "../../ffi/watch.ts";
import { IdleLimit } from "./idle-limit.ts";
import { BY_CALL, endStartedByCall, holdLock, separate } from "./by-call.ts";
import { LeaseService } from "./lease-service.ts";
import { OwnFile } from "./own-file.ts";
import { openSocketOfResident, residentPid, socketHandedOver } from "./socket.ts";
import type { WorkerCount } from "./demand.ts";
import { Workers } from "./workers.ts";

export interface ServeOptions {
  /** Undefined: one, and more while calls wait. */
  workers: number | undefined;
  /** It ends when nobody has called for so long; 0: never. */
  idleSeconds: number;
  /** How many attachments a new worker makes for practice; undefined: the usual number. */
  rehearsals: number | undefined;
  holdsLeases: boolean;
  /** A call has started it. */
  isByCall: boolean;
}

/** How often the parent looks by itself. It learns at once what others change in the directories. */
const LOOK_MS = 5000;
/** The pause after a failed attempt to listen, and between two looks while workers end. */
const AGAIN_MS = 1000;
/** A pause for a process that removes the socket, and may be about to remove its directory. */
const COURTESY_MS = 20;

/** A resident that is to end takes no call from then on, and gives the socket up at once. */
const END_MS = 5000;

/** Without `--workers`: fewer than processors where these are many, because one worker serves some 300 calls a second. */
const MOST_UNASKED = 4;
/** More win nothing; these take half a second of one processor. */
const REHEARSALS = 100;

/** Returns the exit status. */
export function serve(options: ServeOptions): number {
  const { workers, idleSeconds, rehearsals, holdsLeases, isByCall } = options;
  const argv = [
    "patchbay",
    "serve",
    ...isByCall ? [BY_CALL] : [],
    ...workers === undefined ? [] : [`--workers=${workers}`],
    ...idleSeconds === 0 ? [] : [`--idle=${idleSeconds}`],
    ...rehearsals === undefined ? [] : [`--rehearsals=${rehearsals}`],
    ...holdsLeases ? ["--dhcp"] : [],
  ];
  const daemon = Daemon.begin(argv, isByCall ? separate : undefined);
  if (isByCall) holdLock();
  else replaceOneByCall();
  return new Parent(daemon, argv, socketHandedOver() ?? openSocketOfResident(), options).run();
}

/** One that somebody starts has the place of one that a call has started, which ends first. */
function replaceOneByCall(): void {
  const pid = endStartedByCall();
  for (let waitedMs = 0; pid !== undefined && residentPid() === pid && waitedMs < END_MS; waitedMs += COURTESY_MS) {
    Bun.sleepSync(COURTESY_MS);
  }
}

class Parent {
  private readonly workers: Workers;
  private readonly watch = new Watch();
  private readonly file = new OwnFile();
  private readonly leases: LeaseService;
  private readonly idle: IdleLimit;
  private readonly isByCall: boolean;
  private readonly count: WorkerCount;
  private obstacle = "";
  private readonly pause = new Pause();

  constructor(
    private readonly daemon: Daemon,
    private readonly argv: readonly string[],
    private socket: Listener,
    { workers, idleSeconds, rehearsals, holdsLeases, isByCall }: ServeOptions,
  ) {
    this.count = { least: workers ?? 1, most: workers ?? Math.min(navigator.hardwareConcurrency, MOST_UNASKED) };
    this.workers = new Workers(this.count, rehearsals ?? REHEARSALS);
    this.leases = new LeaseService(holdsLeases);
    this.idle = new IdleLimit(idleSeconds);
    this.isByCall = isByCall;
    this.beginServing();
  }

  run(): number {
    this.leases.startIfMissing();
    this.workers.adjust();
    // A manager says by itself that the service has begun.
    if (!tellManager("READY=1")) {
      const { least, most } = this.count;
      warn(
        `the resident serves calls on ${RESIDENT_SOCKET} (workers: ${least === most ? most : `${least} to ${most}`})`,
      );
    }
    for (;;) {
      this.watch.entries(this.file.directory);
      this.watchSocket();
      const end = this.whyEnd();
      if (end !== undefined) {
        warn(end);
        return this.end();
      }
      this.keepListening();
      const isReady = this.socket.isInPlace && this.workers.isBoardInPlace;
      const pauseMs = isReady ? Math.min(LOOK_MS, this.workers.adjust()) : AGAIN_MS;
      if (this.waitFor(Math.min(pauseMs, this.leases.startIfMissing(), this.idle.leftMs))) return this.end();
    }
  }

  /** Waits until something happens. Returns whether a signal ends this process. */
  private waitFor(pauseMs: number): boolean {
    const { ready, mustEnd } = this.daemon.wait([this.watch.fd, ...this.workers.queueFds], pauseMs);
    if (this.workers.queueFds.some((fd) => ready.has(fd))) this.workers.noteQueue();
    if (ready.has(this.watch.fd)) {
      this.watch.forgetChanges();
      this.file.forgetRefused();
    }
    const { ended } = forgetEnded();
    this.workers.forget(ended);
    this.leases.forget(ended);
    return mustEnd;
  }

  /** The entries of the directory are not watched: each call makes some (ledgers). */
  private watchSocket(): void {
    this.watch.itself(DIRECTORY_OF_ROOT);
    this.watch.itself(RESIDENT_SOCKET);
    this.watch.itself(RESIDENT_BOARD);
  }

  private whyEnd(): string | undefined {
    // The next call starts one of the new file.
    if (this.isByCall && this.file.isOther) return `${this.file.path} is gone or another file; the resident ends`;
    if (this.isByCall && !mayStartResident(this.file.path)) {
      return `no ${PERMISSION} is beside ${this.file.path}; the resident ends`;
    }
    this.file.executeReplacement((program) => this.executeNewFile(program));
    if (this.file.isGone) {
      return `${this.file.path} is gone; the resident ends, and calls run by themselves`;
    }
    this.idle.note(this.workers.calls);
    if (this.idle.isOver) return this.idle.text;
    if (this.socket.isInPlace) return undefined;
    const other = residentPid();
    return other === undefined ? undefined : `process ${other} listens on ${RESIDENT_SOCKET} now; this resident ends`;
  }

  /**
   * The workers end after their calls. Until the new build has workers, calls run by themselves. Their board goes first: it
   * would pass for that of the new build, which is the same process.
   */
  private executeNewFile(program: string): never {
    this.workers.retire();
    // The new build starts a service of its own.
    this.leases.end();
    return this.daemon.execute(program, this.argv, this.socket);
  }

  /** So that launchers find this resident, and what its workers do. */
  private keepListening(): void {
    if ((this.socket.isInPlace && this.workers.isBoardInPlace) || this.pause.leftMs > 0) return;
    Bun.sleepSync(COURTESY_MS);
    this.beginServing();
  }

  private beginServing(): void {
    try {
      if (!this.socket.isInPlace) this.listenAgain();
      this.workers.serve(this.socket.fd);
      this.watchSocket();
      this.obstacle = "";
    } catch (error) {
      this.pause.begin(AGAIN_MS);
      const obstacle = errorText(error);
      if (obstacle !== this.obstacle) warn(`calls run by themselves: ${obstacle}`);
      this.obstacle = obstacle;
    }
  }

  private listenAgain(): void {
    const before = this.socket;
    this.socket = openSocketOfResident();
    before.close();
    warn(`${RESIDENT_SOCKET} was removed; the resident listens on a new one`);
  }

  /** No new calls; those that run end. The second signal does not wait for them: each worker ends after its call. */
  private end(): number {
    tellManager("STOPPING=1");
    this.socket.close();
    this.leases.end();
    this.workers.retire();
    while (forgetEnded().areRunning) {
      if (this.daemon.wait([], AGAIN_MS).mustEnd) return 1;
    }
    return 0;
  }
}
