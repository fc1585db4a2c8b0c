/**
 * Many calls of many kinds through one worker: it holds no more afterwards than before, and neither does the kernel.
 * PATCHBAY_TEST_SOAK says how many calls.
 */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { type Network, network } from "../../support/network.ts";
import { childrenOf, startResident } from "../../support/resident.ts";
import { statusOf } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";
import { untilServed } from "../../support/served.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

const CALLS = Number(process.env.PATCHBAY_TEST_SOAK ?? 1500);
const WARM_UP = 150;
/** Without the pages of the program's file: how many of these are mapped is up to the page cache. */
const MOST_OWN_KIB = 48 * 1024;

const ipam = (third: number) => ({ type: "host-local", subnet: `10.1.${third}.0/24` });
const kinds = [
  { type: "bridge", isGateway: true, ipMasq: true, ipam: ipam(1) },
  { type: "bridge", bridge: "cni1", vlan: 0, mtu: 1400, ipam: ipam(2) },
  { type: "ptp", ipMasq: true, ipam: ipam(3) },
  { type: "macvlan", master: "m0", ipam: ipam(4) },
  { type: "host-local", ipam: ipam(5) },
  { type: "loopback" },
];
/** Calls that are refused, each at another place. */
const wrong = [
  { type: "bridge", mtu: "big", ipam: ipam(6) },
  { type: "bridge", bridge: "m0", ipam: ipam(6) },
  { type: "ptp", ipam: { ...ipam(6), subnet: "rubbish" } },
  { type: "macvlan", master: "nowhere", ipam: ipam(6) },
  { type: "host-local", ipam: { ...ipam(6), rangeStart: "10.9.9.9" } },
];

interface Held {
  descriptors: number;
  threads: number;
  children: number;
}

function heldBy(pid: number): Held {
  return {
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: readdirSync(`/proc/${pid}/task`).length,
    children: childrenOf(pid).length,
  };
}

/** Makes calls until there were `count`; answers how many failed that should not, or the other way round. */
async function call(
  machine: Machine,
  nets: readonly Network[],
  container: Container,
  count: number,
): Promise<string[]> {
  const odd: string[] = [];
  for (let made = 0; made < count;) {
    for (const net of nets) {
      for (const command of ["STATUS", "ADD", "CHECK", "DEL", "DEL"]) {
        const { code, stdout } = await net.call(command, command === "STATUS" ? undefined : container);
        if (code !== 0) odd.push(`${made} ${command}: ${stdout}`);
        made++;
      }
    }
    for (const conf of wrong) {
      const { code, json } = await network(machine, conf).call("ADD", container);
      if (code === 0 || !(json?.code > 0)) odd.push(`${made} ${JSON.stringify(conf)} was taken`);
      made++;
    }
  }
  return odd;
}

test(`${CALLS} calls leave the worker and the kernel as they were`, async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add m0 type veth peer name m1; ip link set m1 up; ip link set m0 up");
  const container = await machine.container("c1");
  await using resident = await startResident(machine, 1);
  const [worker] = childrenOf(resident.pid);
  const nets = kinds.map((conf) => network(machine, conf));
  expect(await call(machine, nets, container, WARM_UP)).toEqual([]);
  const moment = await quietMoment(machine);
  for (let count = 0; count < 500 && childrenOf(worker!).length > 0; count++) await untilServed(machine);
  const before = heldBy(worker!);
  expect(await call(machine, nets, container, CALLS)).toEqual([]);
  expect(await leftSince(moment, machine)).toEqual([]);
  const { served, workers } = await statusOf(machine);
  expect(served).toBeGreaterThan(0.98 * CALLS);
  expect(workers[0]!.ownMemoryKib).toBeLessThan(MOST_OWN_KIB);
  // A worker that has served many thousand calls makes room for another one, which holds the same.
  const [last] = childrenOf(resident.pid);
  // Each call forgets the children of earlier ones.
  for (let count = 0; count < 500 && childrenOf(last!).length > 0; count++) await untilServed(machine);
  if (CALLS < 10_000) expect(last).toBe(worker!);
  // The runtime's helpers end when they were idle for ten seconds.
  await untilTrue(() => heldBy(last!), (held) => held.threads <= before.threads);
  expect(heldBy(last!)).toEqual({ ...before, threads: expect.any(Number) });
}, 24 * 3600_000);
