import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { openMachine } from "../../support/machine.ts";

const netlink = resolve(import.meta.dir, "../../../src/ffi/netlink");
const ask = `
  import { knowsLinkKind } from "${netlink}/route/known-kind.ts";
  import { knowsQdisc } from "${netlink}/tc/qdisc.ts";
  import { NETLINK_ROUTE, openNetlink } from "${netlink}/socket.ts";
  const socket = openNetlink(NETLINK_ROUTE);
  console.log(JSON.stringify([
    ["veth", "ifb", "bridge", "nonesuch"].map((kind) => knowsLinkKind(socket, kind)),
    ["tbf", "htb", "nonesuch"].map((kind) => knowsQdisc(socket, kind)),
  ]));`;

test("kinds of links and queueing disciplines are known or not, and asking makes none", async () => {
  await using machine = await openMachine();
  const state = () => machine.sh("ip -br link; tc qdisc show");
  const before = await state();
  const { stdout, stderr } = await machine.run([process.execPath, "-e", ask]);
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual([[true, true, true, false], [true, true, false]]);
  expect(await state()).toBe(before);
});
