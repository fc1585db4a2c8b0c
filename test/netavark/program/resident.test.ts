/** No resident gets netavark's calls, which wait for other drivers, locks and aardvark-dns: they have arguments. */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";
import { creation } from "../../support/netavark/creation.ts";
import { netavark } from "../../support/netavark/netavark.ts";
import { startResident } from "../../support/resident.ts";
import { untilServed } from "../../support/resident-status.ts";

// The test says itself that there is a resident.
delete process.env.PATCHBAY_TEST_RESIDENT;

test("with a resident the answer is the same", async () => {
  await using machine = await openMachine();
  const without = await netavark(machine, ["create"], creation());
  await using _resident = await startResident(machine);
  for (const env of [{}, { CNI_COMMAND: "ADD" }] as Record<string, string>[]) {
    const { code, json } = await netavark(machine, ["create"], creation(), { env });
    expect([code, { ...json, created: "" }]).toEqual([0, { ...without.json, created: "" }]);
  }
  const { served, declined } = await untilServed(machine);
  expect({ served, declined }).toEqual({ served: 0, declined: {} });
});
