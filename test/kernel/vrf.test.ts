/** vrf on a kernel without VRFs. test/vm/suites/vrf.test.ts has the rest. */
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

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
