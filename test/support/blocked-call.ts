/** A call of the plugin bridge that waits in a worker of a resident, for as long as the test wants. */
import { expect } from "bun:test";
import { isAsleep } from "./asleep.ts";
import type { Container, Machine } from "./machine.ts";
import { network } from "./network.ts";
import { environmentOf, patchbayPlugins } from "./plugins.ts";
import type { Status } from "./resident-status.ts";

/** A network with host-local. */
type BridgeConf = { type: string } & Record<string, unknown>;

const holdLock = `
  import { O_RDWR, openFile } from "${import.meta.dir}/../../src/ffi/files.ts";
  import { lockRangeExclusive } from "${import.meta.dir}/../../src/process/lock.ts";
  lockRangeExclusive(openFile("/var/lib/cni/networks/net/.patchbay/locks", O_RDWR), { start: 0 });
  console.log("held");
  for await (const _ of Bun.stdin.stream());
`;

/** An ADD that waits for host-local's lock, which the test holds. strace(1) tells whether the ADD runs by itself. */
async function beginBlocked(machine: Machine, container: Container, conf: BridgeConf) {
  const holder = machine.start([process.execPath, "-e", holdLock]);
  await holder.stdout.getReader().read();
  const call = { plugin: "bridge", command: "ADD", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  const env = environmentOf(patchbayPlugins(), call), stdin = JSON.stringify(call.conf);
  const outcome = machine.run(["strace", "-e", "trace=openat", `${patchbayPlugins()}/bridge`], { env, stdin });
  return async () => {
    await holder.stdin.end();
    await holder.exited;
    const { code, stderr } = await outcome;
    return { code, ranBy: stderr.includes("ld-linux") ? "itself" : "resident" };
  };
}

const LOOKS = 600;

/** The same, in a worker. On a busy machine no worker may begin it in time: then it is made again. */
export async function blockedCall(machine: Machine, conf: BridgeConf, workers: Status["workers"]) {
  const container = await machine.container("c1"),
    other = await machine.container("c2"),
    net = network(machine, conf);
  await net.add(other);
  await net.del(other);
  for (;;) {
    const release = await beginBlocked(machine, container, conf);
    for (let count = 0; count < LOOKS; count++) {
      const busy = workers.find(({ pid }) => isAsleep(pid));
      if (busy !== undefined) return { release, busy };
      await Bun.sleep(5);
    }
    expect((await release()).code).toBe(0);
    await net.del(container);
  }
}
