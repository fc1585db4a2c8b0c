/** A namespace that a container makes for itself, within its own. */
import { readdirSync } from "node:fs";
import { textOf } from "./if-there.ts";
import type { Container, Machine } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

/** A shell of the container's, which has a child in a user and network namespace of its own. Returns what ends it. */
export async function innerNamespace(machine: Machine, container: Container, how = "wait") {
  const shell = machine.start([
    "nsenter",
    `--net=${container.netnsPath}`,
    "sh",
    "-c",
    `unshare -Urn sleep 1000 & inner=$!; read -r _; ${how}`,
  ]);
  const inner = await untilTrue(
    () => Promise.resolve(childOf(shell.pid)),
    (pid) => pid !== undefined && commandOf(pid) === "sleep",
  );
  const pid = inner!;
  return {
    pid,
    shell,
    /** Lets the shell go on. */
    async goOn() {
      shell.stdin.write("\n");
      await shell.stdin.flush();
    },
    async end() {
      for (const each of [childOf(shell.pid), shell.pid]) if (each !== undefined) process.kill(each, "SIGKILL");
      await shell.exited;
    },
  };
}

function childOf(pid: number): number | undefined {
  for (const each of readdirSync("/proc").filter((name) => /^[0-9]+$/.test(name))) {
    if (textOf(`/proc/${each}/stat`).split(") ").at(-1)!.split(" ")[1] === `${pid}`) return Number(each);
  }
  return undefined;
}

export function commandOf(pid: number): string {
  return textOf(`/proc/${pid}/comm`).trim();
}

/** Before a script that runs in it. */
export const inInner = (
  pid: number,
) => ["nsenter", "-t", `${pid}`, "-U", "-n", "--preserve-credentials", "sh", "-ec"];
