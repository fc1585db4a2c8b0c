/** A hook of OCI runtimes and a network whose addresses are of a cluster's pool. */
import { expect, test } from "bun:test";
import { hook, silent, startHooked, writeNetwork } from "../../support/hooked.ts";
import { openMachine } from "../../support/machine.ts";
import { POOLS, serve, STATE } from "../../support/served-pool.ts";

test("a container gets an address of the pool; del gives it back though the agent has ended", async () => {
  await using machine = await openMachine();
  await serve(machine);
  const ipam = { type: "patchbay-cluster", pool: "lan" };
  await writeNetwork(machine, "pooled", [{ type: "bridge", bridge: "pool0", capabilities: { ips: true }, ipam }]);
  const leases = () => machine.sh(`ls ${POOLS}/lan | grep ^10 || true`);
  await using web = await startHooked(machine, "web");
  expect(await hook(machine, ["add", "pooled"], web.state())).toEqual(silent);
  expect(await web.inside("ip -o -4 address show eth0")).toContain("inet 10.50.0.16/24");
  await using db = await startHooked(machine, "db");
  expect(await hook(machine, ["add", "pooled ip=10.50.0.30"], db.state())).toEqual(silent);
  expect(await leases()).toBe("10.50.0.16\n10.50.0.30\n");
  await machine.sh(`rm ${STATE}/pool~lan`);
  for (const container of [web, db]) {
    await container.end();
    expect(await hook(machine, ["del"], { id: container.id })).toEqual(silent);
  }
  expect(await leases()).toBe("");
  await using late = await startHooked(machine, "late");
  const refused = await hook(machine, ["add", "pooled"], late.state());
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("pool lan: nothing of it has been served on this host since the boot");
});
