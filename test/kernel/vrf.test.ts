/** What vrf says on a kernel without VRFs. test/vm/suites/vrf.test.ts has the rest. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

test("STATUS says whether the kernel has VRFs, and makes none", async () => {
  await using machine = await openMachine();
  const net = network(machine, { type: "vrf", vrfname: "red" });
  const moment = await quietMoment(machine);
  const answer = await net.call("STATUS", undefined);
  if (lacks("VRF links")) {
    expect(answer.json).toMatchObject({ code: 50, msg: expect.stringContaining("CONFIG_NET_VRF") });
  } else expect(answer.code).toBe(0);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("DEL asks for no sensible configuration where nothing was made", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, { type: "vrf" });
  for (const vrfname of [undefined, "", "a b", "sixteen-letters-", "lo", 7]) {
    await net.del(container, { conf: { vrfname, table: -1 } });
    expect((await net.call("CHECK", container, { conf: { vrfname, prevResult: {} } })).code).toBe(1);
  }
  expect(await machine.sh("ip -br link", { in: container })).toMatch(/^lo +DOWN/);
});
