/** What dummy says on a kernel without dummy links. test/vm/suites/dummy.test.ts has the rest. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

test("STATUS says whether the kernel has dummy links", async () => {
  await using machine = await openMachine();
  const net = network(machine, { type: "dummy", ipam: { type: "static" } });
  const answer = await net.call("STATUS", undefined);
  if (lacks("dummy links")) expect(answer.json).toMatchObject({ code: 50, msg: "this kernel has no dummy links" });
  else expect(answer.code).toBe(0);
});
