/** loopback sets `lo` up and down and changes nothing else. */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { ping } from "../support/traffic.ts";

const conf = { type: "loopback" };

test("ADD lets a container reach itself; DEL takes lo down again", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const moment = await quietMoment(machine);
  const net = network(machine, conf);
  expect(await net.add(container, { ifName: "lo" })).toEqual({
    cniVersion: "1.1.0",
    interfaces: [{ name: "lo", mac: "00:00:00:00:00:00", sandbox: container.netnsPath }],
    ips: [{ address: "127.0.0.1/8", interface: 0 }, { address: "::1/128", interface: 0 }],
  });
  expect(await ping(machine, container, "127.0.0.1")).toBe(true);
  await net.check(container, { ifName: "lo" });
  await net.del(container, { ifName: "lo" });
  await net.del(container, { ifName: "lo" });
  // The kernel gives lo its addresses when it comes up for the first time, and keeps them.
  expect(await leftSince(moment, machine, /127\.0\.0|::1\/128|lo qdisc=/)).toEqual([]);
});

test("CHECK says that lo is down", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, conf);
  await net.add(container);
  await machine.sh("ip link set lo down", { in: container });
  const answer = await net.call("CHECK", container);
  expect(answer.code).toBe(1);
  expect(answer.json.msg).toContain("loopback interface is down");
});

test.each([
  { name: "without CNI_NETNS", env: { CNI_NETNS: undefined } },
  { name: "with the namespace gone", env: { CNI_NETNS: "/var/run/netns/gone" } },
])("DEL succeeds $name", async ({ env }) => {
  await using machine = await openMachine();
  await network(machine, conf).del(await machine.container(), { env });
});

test("the host's own lo is not touched", async () => {
  await using machine = await openMachine();
  const net = network(machine, conf);
  const env = { CNI_NETNS: `/proc/${machine.pid}/ns/net`, CNI_CONTAINERID: "x", CNI_IFNAME: "lo" };
  for (const verb of ["DEL", "ADD"]) {
    const answer = await net.call(verb, undefined, { env });
    expect({ code: answer.code, error: answer.json.code }).toEqual({ code: 1, error: 8 });
  }
  expect(await ping(machine, undefined, "127.0.0.1")).toBe(true);
});
