/** Asking the kernel whether it knows a kind of link, queueing discipline or action creates nothing. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";

const netlink = resolve(import.meta.dir, "../../../src/ffi/netlink");
const ask = `
  import { knowsLinkKind } from "${netlink}/route/link.ts";
  import { knowsAction, knowsQdisc } from "${netlink}/tc/known-kind.ts";
  import { NETLINK_ROUTE, openNetlink } from "${netlink}/socket.ts";
  const socket = openNetlink(NETLINK_ROUTE);
  console.log(JSON.stringify([
    ["veth", "ifb", "bridge", "nonesuch"].map((kind) => knowsLinkKind(socket, kind)),
    ["tbf", "htb", "pfifo", "ingress", "nonesuch"].map((kind) => knowsQdisc(socket, kind)),
    ["mirred", "nonesuch"].map((kind) => knowsAction(socket, kind)),
  ]));`;

test("kinds of links, queueing disciplines and actions are known or not, and asking makes none", async () => {
  await using machine = await openMachine();
  const state = () => machine.sh("ip -br link; tc qdisc show; tc actions list action mirred");
  const before = await state();
  const { stdout, stderr } = await machine.run([process.execPath, "-e", ask]);
  expect(stderr).toBe("");
  const known = [[true, true, true, false], [true, true, true, true, false], [true, false]];
  expect(JSON.parse(stdout)).toEqual(known);
  expect(await state()).toBe(before);
  // Where there is one, too.
  await machine.sh("tc qdisc add dev lo ingress; tc qdisc add dev lo root pfifo");
  expect(JSON.parse((await machine.run([process.execPath, "-e", ask])).stdout)).toEqual(known);
});
