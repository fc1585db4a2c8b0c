/** `patchbay serve --dhcp`: the DHCP service as a child, so that a host runs one service. It is started again when it ends. */
import { errorText } from "../../cni/error.ts";
import { PARENT } from "../../services/daemon/daemon.ts";
import { Pause } from "../../services/daemon/pause.ts";
import { environmentEntries } from "../../ffi/environment.ts";
import { closeFile, O_RDONLY, openFile } from "../../ffi/files.ts";
import { utf8 } from "../../ffi/libc.ts";
import { sendSignal, SIGTERM } from "../../ffi/signals.ts";
import { spawn } from "../../ffi/spawn.ts";
import { warn } from "../../process/warn.ts";

/** The least time between two starts. */
const PAUSE_MS = 5000;

export class LeaseService {
  private pid: number | undefined;
  private readonly pause = new Pause();

  constructor(private readonly isWanted: boolean) {}

  /** Returns after how many milliseconds to call this again, or Infinity. */
  startIfMissing(): number {
    if (!this.isWanted || this.pid !== undefined) return Infinity;
    const pauseMs = this.pause.leftMs;
    if (pauseMs !== 0) return pauseMs;
    this.pause.begin(PAUSE_MS);
    const nothing = openFile("/dev/null", O_RDONLY);
    try {
      this.pid = spawn({
        path: "/proc/self/exe",
        argv: ["patchbay", "dhcp"],
        environment: [...environmentEntries(), utf8(`${PARENT}=${process.pid}`)],
        descriptors: [nothing, 1, 2],
        hasOwnGroup: true,
      });
      return Infinity;
    } catch (error) {
      warn(`cannot start the DHCP service: ${errorText(error)}`);
      return PAUSE_MS;
    } finally {
      closeFile(nothing);
    }
  }

  /** Takes notice of processes that have ended. */
  forget(pids: readonly number[]): void {
    if (this.pid === undefined || !pids.includes(this.pid)) return;
    this.pid = undefined;
    warn("the DHCP service has ended; it is started again, and goes on with its leases");
  }

  /** The leases stay. */
  end(): void {
    if (this.pid !== undefined) sendSignal(this.pid, SIGTERM);
    this.pid = undefined;
  }
}
