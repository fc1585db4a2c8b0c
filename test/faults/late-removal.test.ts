/**
 * DEL is killed when it has begun a child that removes a link (src/ffi/reaper.ts), and the child is late. What was made
 * since under the link's name stays.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { environmentOf, patchbayPlugins } from "../support/plugins.ts";
import { childrenOf } from "../support/resident.ts";
import { untilTrue } from "../support/until-true.ts";

const conf = { type: "bridge", bridge: "br0", ipam: { type: "host-local", subnet: "10.9.0.0/24" } };

/** The child reads its request first. On a busy machine it may be in time, and then this test shows nothing. */
const LATE_US = 3_000_000;

/** Whether the process has begun the child that removes a link. */
function isRemoving(pid: number): boolean {
  try {
    return childrenOf(pid).some((child) => readFileSync(`/proc/${child}/cmdline`, "utf8") === "patchbay-reaper\0");
  } catch {
    return false;
  }
}

test("a child of a killed DEL deletes no link that is not the one it was told of", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  await net.add(container);
  const call = { plugin: "bridge", command: "DEL", container, conf: { cniVersion: "1.1.0", name: "net", ...conf } };
  const env = Object.entries(environmentOf(patchbayPlugins(), call)).map(([name, value]) => `${name}=${value}`);
  const late = `inject=pread64:delay_enter=${LATE_US}:when=1`;
  const trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64", "-e", late];
  const tracer = machine.start([...trace, "env", ...env, `${patchbayPlugins()}/bridge`]);
  tracer.stdin.write(JSON.stringify(call.conf));
  await tracer.stdin.end();
  const plugin = await untilTrue(() => childrenOf(tracer.pid).find(isRemoving), Boolean);
  process.kill(plugin!, "SIGKILL");
  await net.del(container);
  await net.add(container);
  await tracer.exited;
  expect(await machine.sh("ip -o link show eth0", { in: container })).toContain("state UP");
  await net.check(container);
  await net.del(container);
});
