/** The id of the boot. Who cannot read it does not guess: leases of an earlier boot would count as this one's. */
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const MISSING = "/proc/sys/kernel/random/boot_id is missing: mount all of /proc";

test("without the id of the boot, no lease is given, and none is taken up", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh("mount -t tmpfs tmpfs /proc/sys/kernel/random");
  const conf = {
    cniVersion: "1.1.0",
    name: "net",
    type: "bridge",
    ipam: { type: "host-local", subnet: "10.1.0.0/24" },
  };
  const answer = await cni(machine, patchbayPlugins(), { plugin: "host-local", command: "ADD", container, conf });
  expect(answer).toMatchObject({ code: 1, json: { msg: expect.stringContaining(MISSING) } });
  const service = await machine.run([PATCHBAY, "dhcp"]);
  expect(service).toMatchObject({ code: 1, stderr: expect.stringContaining(MISSING) });
});
