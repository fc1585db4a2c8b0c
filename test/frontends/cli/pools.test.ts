/** Commands on networks that have their addresses from a pool: whose leases are whose, what is full, what goes with a network. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { commandsOn } from "../../support/commands.ts";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { POOLS, serve, STATE } from "../../support/served-pool.ts";

let machine: Machine;
beforeEach(async () => {
  machine = await openMachine();
  await machine.sh(`mkdir -p ${CONFIGS}`);
  for (const name of ["c1", "c2"]) await machine.container(name);
});
afterEach(() => machine[Symbol.asyncDispose]());

const { patchbay: run, must } = commandsOn(() => machine, () => CONFIGS);
const patchbay = (...args: string[]) => run(args);
const ipam = { type: "patchbay-cluster", pool: "lan" };
const bridge = (more: object = {}) => [{ type: "bridge", bridge: "br0", ipam, ...more }];

/** Two networks on one pool, with a container each. */
async function twoNetworks(): Promise<void> {
  await serve(machine);
  await writeNetwork(machine, "one", bridge());
  await writeNetwork(machine, "two", bridge());
  await must("add", "one", "c1", "--container-id", "web");
  await must("add", "two", "c2", "--container-id", "db");
}

describe("ipam", () => {
  test("lists leases by their network, and names the pool", async () => {
    await twoNetworks();
    await machine.sh(`printf 'printer in room 5' >${POOLS}/lan/10.50.0.30`);
    expect(await must("ipam", "list")).toBe(
      "-    10.50.0.30  (not an attachment)  -         pool lan\n" +
        "one  10.50.0.16  web                  c1  eth0  pool lan\n" +
        "two  10.50.0.17  db                   c2  eth0  pool lan\n",
    );
    expect(JSON.parse(await must("ipam", "list", "two", "--json"))).toEqual([
      { network: "two", address: "10.50.0.17", containerId: "db", ifName: "eth0", pool: "lan" },
    ]);
    await machine.sh("mkdir -p /run/elsewhere/one");
    expect(await must("ipam", "list", "one", "--data-dir", "/run/elsewhere")).toBe("");
    // Somebody who names the directory of all pools lists one of them.
    expect(await must("ipam", "list", "lan", "--data-dir", POOLS)).toContain("one  10.50.0.16  web ");
  });

  test("releases what the network has, and nothing of another's", async () => {
    await twoNetworks();
    const other = await patchbay("ipam", "release", "one", "10.50.0.17");
    expect([other.code, other.stdout]).toEqual([1, "10.50.0.17: not leased\n"]);
    const living = await patchbay("ipam", "release", "one", "10.50.0.16");
    expect(living.stderr).toContain(
      "container web has 10.50.0.16 by eth0 in network one, and lives; nothing is released",
    );
    expect(await must("ipam", "release", "one", "10.50.0.16", "--force")).toBe(
      "10.50.0.16: released, was web/eth0/one\n",
    );
    expect(await must("ipam", "release", "two", "--container", "db", "--force")).toBe(
      "10.50.0.17: released, was db/eth0/two\n",
    );
    const none = await patchbay("ipam", "release", "two", "10.50.0.17");
    expect(none.stderr).toContain("the network has no leases");
  });
});

describe("network remove", () => {
  test("releases its own leases, and the pool's directory goes with the last of all", async () => {
    await twoNetworks();
    await must("del", "one", "c1", "--container-id", "web");
    await machine.sh(`printf 'lost\\r\\neth0\\r\\none' >${POOLS}/lan/10.50.0.25`);
    expect((await patchbay("network", "remove", "one")).stderr).toContain(
      "network one has 1 lease that no record explains: lease 10.50.0.25 of container lost",
    );
    // A bridge that another network uses stays, too.
    const removed = await must("network", "remove", "one", "--leases");
    expect(removed).toContain("removed lease 10.50.0.25 of container lost\n");
    expect(removed).not.toContain("directory");
    expect(await machine.sh(`ls ${POOLS}/lan`)).toContain("10.50.0.17");
    await must("del", "two", "c2", "--container-id", "db");
    expect(await must("network", "remove", "two")).toContain(`removed directory ${POOLS}/lan\n`);
    expect(await machine.sh(`ls ${POOLS}`)).toBe("");
  });

  test("a network without a file: its leases in pools are found, and 'networks' names it", async () => {
    await twoNetworks();
    await machine.sh(`rm ${CONFIGS}/one.conflist; rm -r /var/lib/cni/results ${STATE}/one; ip -n c1 link del eth0`);
    expect(await must("networks")).toContain("network one: 0 attachments and 1 lease, and no file");
    expect(await must("network", "remove", "one", "--leases")).toMatch(
      /^removed lease 10\.50\.0\.16 of container web\nbridge br0 stays: veth\w+ uses it\n$/,
    );
    expect(await machine.sh(`ls ${POOLS}/lan | grep ^10`)).toBe("10.50.0.17\n");
  });
});

describe("what commands say of a pool", () => {
  test("networks that share it are not in each other's way; two bridges with one subnet are", async () => {
    await serve(machine);
    await writeNetwork(machine, "one", bridge());
    await writeNetwork(machine, "two", bridge());
    const warnings = async () =>
      JSON.parse(await must("networks", "--json")).map(({ warnings }: { warnings: string[] }) => warnings);
    expect(await warnings()).toEqual([[], []]);
    await writeNetwork(machine, "one", bridge({ isGateway: true }));
    await writeNetwork(machine, "two", bridge({ isGateway: true, bridge: "br1" }));
    expect(await warnings()).toEqual([
      [`addresses 10.50.0.0/24 overlap with those of network two in ${CONFIGS}/two.conflist`],
      [`addresses 10.50.0.0/24 overlap with those of network one in ${CONFIGS}/one.conflist`],
    ]);
  });

  test("status counts, and says when it is full", async () => {
    await serve(machine, { ranges: [{ cidr: "10.50.0.0/24", blockSize: 1 }], blocks: [4, 9] });
    await writeNetwork(machine, "one", bridge());
    await must("add", "one", "c1");
    expect(await must("status", "one")).toBe("addresses of pool lan, 2 blocks of 10.50.0.0/24: 1 of 2 free\n");
    await must("add", "one", "c2");
    const full = await patchbay("status", "one");
    expect([full.code, full.stdout]).toEqual([
      1,
      "addresses of pool lan, 2 blocks of 10.50.0.0/24: pool full: 0 of 2 free\n",
    ]);
    const again = await patchbay("add", "one", "c1", "--ifname", "eth1");
    expect(again.stderr).toContain(
      "pool lan (10.50.0.0/24): 2 of 2 addresses in the 2 blocks of this node n1 are in use",
    );
    expect(again.stderr).toContain("'patchbay pool show lan' says who has its blocks");
  });

  test("plan foresees the address, or says what ADD would", async () => {
    await serve(machine);
    await writeNetwork(machine, "one", bridge());
    expect(await must("plan", "one", "c1")).toContain("10.50.0.16/24");
    expect(await machine.sh(`ls ${POOLS} 2>/dev/null || true`)).toBe("");
    await machine.sh(`rm ${STATE}/pool~lan`);
    const { code, stdout, stderr } = await patchbay("plan", "one", "c1");
    expect(code).toBe(1);
    expect(stdout + stderr).toContain("pool lan: nothing of it has been served on this host since the boot");
  });

  test("lint says which pool nobody serves here", async () => {
    await serve(machine);
    await writeNetwork(machine, "one", bridge());
    await writeNetwork(machine, "two", bridge({ ipam: { type: "patchbay-cluster", pool: "lna" } }));
    const { stdout, stderr } = await patchbay("lint");
    const said = (stdout + stderr).split("\n").filter((line) => line.includes("pool"));
    expect(said).toEqual([
      expect.stringContaining(
        "nothing of pool \"lna\" is served on this host: 'patchbay pool list' shows the cluster's pools",
      ),
    ]);
  });

  test("CHECK and inspect see whose the address is", async () => {
    await twoNetworks();
    await machine.sh(`printf 'db\\r\\neth0\\r\\ntwo' >${POOLS}/lan/10.50.0.16`);
    const { stdout } = await patchbay("inspect", "web");
    expect(stdout).toContain("patchbay-cluster: Failed to find address added by container web in pool lan");
  });
});
