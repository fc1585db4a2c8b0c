/** vrf where the kernel has no VRFs: what it then says. The rest stands in test/vm/suites/vrf.test.ts. */
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
