/** The program is a plugin, netavark or the runtime, depending on the name it is called by; in a resident, once for each call. */
import { exitNow } from "./ffi/libc.ts";
import { restrictUmask } from "./ffi/umask.ts";
import type { ExitStatus } from "./frontends/cli/command.ts";
import type { DriverCall } from "./frontends/podman/call-of-driver.ts";
import { loadPlugin, pluginNamed } from "./plugins/table.ts";
import { mayStartResident } from "./process/resident-by-call.ts";

function run(calledBy: string, args: readonly string[]): ExitStatus {
  const name = calledBy.slice(calledBy.lastIndexOf("/") + 1), plugin = pluginNamed(name);
  if (plugin === "dhcp" && args[0] === "daemon") return runDhcpDaemon(args.slice(1));
  // What is called `my-bridge` may be the runtime, or a driver of podman's networks. A call of CNI has no arguments.
  if (plugin === name || args.length === 0) {
    const { execPlugin, refuseCall } = require("./engine/exec-plugin.ts") as typeof import("./engine/exec-plugin.ts");
    const status = plugin === undefined ? refuseCall(name) : execPlugin(loadPlugin(plugin)!);
    if (status !== undefined) return status;
  }
  if (name === "netavark") {
    return (require(
      "./frontends/netavark/program/command-line.ts",
    ) as typeof import("./frontends/netavark/program/command-line.ts"))
      .runNetavark(args);
  }
  const driverCall = name === "cnitool" ? undefined : driverCallOf(args);
  if (driverCall !== undefined) return servePodman(driverCall);
  if (args[0] === "serve" && args[1] === "--worker") {
    const status = work(Number(args[2]), Number(args[3]));
    if (status !== undefined) return status;
  }
  return (require("./frontends/cli/command-line.ts") as typeof import("./frontends/cli/command-line.ts"))
    .runCommandLine(name, args);
}

function driverCallOf(args: readonly string[]): DriverCall | undefined {
  return (require("./frontends/podman/call-of-driver.ts") as typeof import("./frontends/podman/call-of-driver.ts"))
    .driverCallOf(args);
}

function servePodman(call: DriverCall): number {
  return (require("./frontends/podman/driver.ts") as typeof import("./frontends/podman/driver.ts")).runDriver(call);
}

function runDhcpDaemon(flags: readonly string[]): number {
  return (require("./services/dhcp/service/daemon.ts") as typeof import("./services/dhcp/service/daemon.ts"))
    .runDaemon(flags);
}

/** Undefined when a person typed the words. */
function work(slot: number, rehearsals: number): number | undefined {
  const worker = require("./frontends/resident/worker.ts") as typeof import("./frontends/resident/worker.ts");
  if (!worker.isStartedByResident()) return undefined;
  return worker.work(slot, rehearsals, ([calledBy, ...rest]) => {
    const status = run(calledBy!, rest);
    if (typeof status !== "number") throw new Error("a command that waits was not declined");
    return status;
  });
}

/** Calls that a resident serves (src/native/launch.h), and that engines make again and again. */
function mayStartOne(calledBy: string, args: readonly string[]): boolean {
  const name = calledBy.slice(calledBy.lastIndexOf("/") + 1);
  if (pluginNamed(name) !== undefined) return args.length === 0;
  if (name === "netavark") return ["setup", "teardown"].includes(args.at(-2) ?? "");
  return ["patchbay", "cnitool"].includes(name) && VERBS.includes(args[0] ?? "");
}

/** Not hooks: the resident would stay in the container's scope, and keep that. */
const VERBS = ["add", "del", "setup", "teardown"];

function main(): ExitStatus {
  restrictUmask();
  const calledBy = process.argv0, args = process.argv.slice(2), status = run(calledBy, args);
  if (mayStartOne(calledBy, args) && mayStartResident()) {
    (require("./frontends/resident/by-call.ts") as typeof import("./frontends/resident/by-call.ts")).startByCall();
  }
  return status;
}

function endWith(status: ExitStatus): void {
  if (typeof status === "number") exitNow(status);
  status.then(exitNow);
}

// In a function: the build moves what the module declares before its statements.
endWith(main());
