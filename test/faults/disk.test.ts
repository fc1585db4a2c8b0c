/**
 * Disks that are full, read-only or out of inodes, under the ledger or the leases: ADD fails with a clear error and
 * leaves nothing, DEL removes what it can, and both work again when the disk does.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const LEASES = "/var/lib/cni/networks", LEDGER = "/run/patchbay";
const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const bridge = { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ipam };

const fill = (path: string) => `dd if=/dev/zero of=${path}/filler bs=4k 2>/dev/null || true`;
const spoilt = [
  {
    name: "full",
    spoil: (path: string) => `mount -t tmpfs -o size=8k,mode=700 tmpfs ${path}; ${fill(path)}`,
    mend: (path: string) => `rm ${path}/filler; mount -o remount,size=10m ${path}`,
  },
  {
    name: "out of inodes",
    spoil: (path: string) => `mount -t tmpfs -o nr_inodes=1,size=10m,mode=700 tmpfs ${path}`,
    mend: (path: string) => `mount -o remount,nr_inodes=1000 ${path}`,
  },
  {
    name: "read-only",
    spoil: (path: string) => `mount -t tmpfs -o ro,size=10m,mode=700 tmpfs ${path}`,
    mend: (path: string) => `mount -o remount,rw ${path}`,
  },
];

const disks = [{ what: "ledger", path: LEDGER }, { what: "leases", path: LEASES }].flatMap((disk) =>
  spoilt.map((fault) => ({ ...disk, ...fault }))
);

test.each(disks)("ADD with the disk of the $what $name fails, and leaves nothing", async ({ path, spoil, mend }) => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, bridge);
  await machine.sh(`mkdir -p ${path}; ${spoil(path)}`);
  const moment = await quietMoment(machine);
  const answer = await net.call("ADD", container);
  expect(answer.code).toBe(1);
  expect(answer.json.code).toBeGreaterThan(0);
  expect(`${answer.json.msg} ${answer.json.details ?? ""}`).toContain(path);
  // Forwarding and empty base chains are shared, and may have been made before the disk was needed.
  // So may the empty file that the leases are locked by.
  const shared = /\.patchbay\/locks$|sysctl .*forwarding|accept_redirects| nft (table|chain) |iptables nat .*:/;
  expect(await leftSince(moment, machine, shared)).toEqual([]);
  await net.del(container);
  await machine.sh(mend(path));
  await net.add(container);
  await net.check(container);
  await net.del(container);
});

test.each(disks)("DEL with the disk of the $what $name takes the container off the network", async (row) => {
  const { path, spoil, mend, name, what } = row;
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, bridge);
  await machine.sh(`mkdir -p ${path}; ${spoil(path)}; ${mend(path)}`);
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);
  await net.add(container);
  await machine.sh(name === "read-only" ? `mount -o remount,ro ${path}` : fill(path));
  const answer = await net.call("DEL", container);
  // Nothing needs space to be taken away; on a read-only disk it stays written down, and DEL must say so.
  expect(answer.code).toBe(name === "read-only" ? 1 : 0);
  expect(await leftSince(moment, machine, /^\+ file /)).toEqual([]);
  await machine.sh(name === "read-only" ? `mount -o remount,rw ${path}` : `rm ${path}/filler`);
  await net.del(container);
  expect({ what, left: await leftSince(moment, machine) }).toEqual({ what, left: [] });
});

test("a state directory others can write to is refused", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  await machine.sh(`mkdir -m 777 -p ${LEDGER}/net`);
  const answer = await network(machine, bridge).call("ADD", container);
  expect(answer.code).toBe(1);
  expect(answer.json.msg).toContain(LEDGER);
});
