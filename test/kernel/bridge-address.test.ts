/**
 * What is for the host's address on a bridge reaches the host. Linux 5.10 has no entry for a bridge's first address until it
 * changes that, and ours stays as it is. There nothing reaches the host without the entry; this kernel makes it by itself.
 */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { ping } from "../support/traffic.ts";

const sources = resolve(import.meta.dir, "../../src/ffi/netlink");

/** Prints whether there was none. */
const script = `
  const { openNetlink, NETLINK_ROUTE } = await import("${sources}/socket.ts");
  const { addHostsEntry } = await import("${sources}/route/bridge.ts");
  const { getLink } = await import("${sources}/route/link.ts");
  const { parseMac } = await import("${sources}/../../net/mac.ts");
  const socket = openNetlink(NETLINK_ROUTE), bridge = getLink(socket, "br0");
  console.log(addHostsEntry(socket, bridge, parseMac(bridge.mac)));
`;

test("the entry of a bridge's own address is made where the kernel has none, and is left as it is elsewhere", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add br0 type bridge");
  const mac = (await machine.sh("cat /sys/class/net/br0/address")).trim();
  const entry = () => machine.sh(`bridge fdb show br br0 | grep '${mac} dev br0 master br0' || true`);
  const answered = async () => (await machine.run([process.execPath, "-e", script])).stdout;

  await machine.run(["bridge", "fdb", "del", mac, "dev", "br0", "self"]);
  expect(await entry()).toBe("");
  expect([await answered(), await entry()]).toEqual(["true\n", expect.stringContaining("permanent")]);
  expect([await answered(), await entry()]).toEqual(["false\n", expect.stringContaining("permanent")]);
});

test("a bridge that ADD makes has the entry", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), ipam = { type: "host-local", subnet: "10.1.0.0/24" };
  const net = network(machine, { type: "bridge", bridge: "br0", isGateway: true, ipam });
  await net.add(container);
  const mac = (await machine.sh("cat /sys/class/net/br0/address")).trim();
  expect(await machine.sh("bridge fdb show br br0")).toContain(`${mac} dev br0 master br0 permanent`);
  expect(await ping(machine, container, "10.1.0.1")).toBe(true);
  await net.del(container);
});
