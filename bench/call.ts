/** One call of one plugin, like an engine's. */
import type { Container, Side } from "./machine.ts";
import type { Finished, Prepared, Program, Runnable } from "./process.ts";

export const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Debian's plugins support versions up to 1.0.0. */
export const CNI_VERSION = "1.0.0";

export function pluginCall(
  side: Side,
  plugin: string,
  command: string,
  conf: Record<string, unknown>,
  container?: Pick<Container, "id" | "netnsPath">,
): Program {
  return {
    path: `${side.bin}/${plugin}`,
    env: {
      PATH,
      ...side.environment,
      CNI_COMMAND: command,
      CNI_PATH: side.bin,
      ...container && { CNI_CONTAINERID: container.id, CNI_NETNS: container.netnsPath, CNI_IFNAME: "eth0" },
    },
    stdin: stdinOf(conf),
  };
}

export function stdinOf(conf: Record<string, unknown>): string {
  return JSON.stringify({ cniVersion: CNI_VERSION, ...conf });
}

/** Gives DEL the result of ADD, as engines do. */
export function passResult(result: string, conf: Record<string, unknown>, del: Prepared): void {
  del.reads(stdinOf({ ...conf, prevResult: JSON.parse(result) }));
}

/** Runs it and throws its output when it fails. */
export function succeed(prepared: Runnable, finished: Finished = prepared.run()): Finished {
  if (finished.code !== 0) {
    throw new Error(`exit status ${finished.code}: ${prepared.stdout()}${prepared.stderr()}`);
  }
  return finished;
}
