/** A host with host-local becomes a node: its containers run on with their addresses, in a real etcd, under a real agent. */
import { expect, test } from "bun:test";
import { type Cluster, ENDPOINT, openCluster } from "../../support/cluster.ts";
import { commandsOn, networkFiles } from "../../support/commands.ts";
import { firstOf, isServing } from "../../support/served-pool.ts";

const { directory, configure } = networkFiles();
const RANGES = [{ cidr: "10.64.0.0/16", blockLength: 24 }];
const HOST_LOCAL = { type: "host-local", subnet: "10.64.3.0/24" };
const OURS = { type: "patchbay-cluster", pool: "pods", dataDir: "/run/nodes/n3/lib/pools" };

const configureWith = (ipam: object) => configure("net", [{ type: "bridge", bridge: "cni0", isGateway: true, ipam }]);

async function stage(cluster: Cluster) {
  const { machine } = cluster, n3 = await cluster.node("n3");
  const { patchbay } = commandsOn(() => machine, () => directory);
  const env = n3.environment;
  const adopt = (...more: string[]) =>
    patchbay(
      [
        "node",
        "adopt",
        "net",
        "--pool",
        "pods",
        "--config",
        "/run/nodes/n3/cluster.json",
        "--data-dir",
        n3.kept,
        ...more,
      ],
      env,
    );
  const attach = async (name: string) => {
    await machine.container(name);
    const { code, stdout, stderr } = await patchbay(["add", "net", name], env);
    return code === 0 ? JSON.parse(stdout).ips[0].address.split("/")[0] as string : stderr;
  };
  const leases = (place: string) => machine.sh(`cd ${place} && ls | grep '^10' || true`);
  return { machine, n3, patchbay, env, adopt, attach, leases };
}

const OLD = "/var/lib/cni/networks/net", POOL = "/run/nodes/n3/lib/pools/pods";

test("its subnet becomes its block, and no container loses its address or gets another's", async () => {
  await using cluster = await openCluster();
  const { machine, n3, patchbay, env, adopt, attach, leases } = await stage(cluster);
  configureWith(HOST_LOCAL);
  const one = await attach("c1"), two = await attach("c2");
  expect((await adopt()).stderr).toContain(`there is no pool pods in etcd at ${ENDPOINT}`);
  await cluster.write("pool/pods", { layout: "routed", ranges: RANGES });
  const open = await adopt();
  expect(open.stderr).toContain("pool pods is open, and block/pods.3 is nobody's");
  expect([open.code, await leases(OLD), await cluster.keys("block/")]).toEqual([1, `${one}\n${two}\n`, []]);
  await cluster.write("pool/pods", { layout: "routed", ranges: RANGES, state: "closed" });
  for (const kept of [2, 0]) {
    const { code, stdout, stderr } = await adopt();
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`network net: ${kept} leases moved into pool pods`);
    expect(stdout).toContain(`"ipam": { "type": "patchbay-cluster", "pool": "pods" }`);
  }
  expect([await leases(POOL), await cluster.record("block/pods.3")]).toMatchObject([
    `${one}\n${two}\n`,
    { owner: { node: "n3", generation: 1 } },
  ]);
  expect(await attach("c3")).toContain("no IP addresses available");
  // What keeps host-local from giving an address is no lease, and nobody gives it back.
  const released = await patchbay(["ipam", "release", "net", one], env);
  expect([released.code, await machine.sh(`cat ${OLD}/${one}`)]).toEqual([1, "moved to pool pods"]);
  expect((await patchbay(["ipam", "list", "net"], env)).stdout).not.toContain("(not an attachment)");
  configureWith(OURS);
  await n3.start();
  const served = await n3.until("pods", isServing);
  expect((await adopt()).stderr).toContain("another 'patchbay node' runs on this host");
  expect(firstOf(served)).toMatch(/^10\.64\.3\./);
  const four = await attach("c4");
  expect(four).toMatch(/^10\.64\.3\./);
  expect([one, two]).not.toContain(four);
  // The ledgers of the first two say host-local; the network says the pool by now.
  const rightNow = async () => {
    for (const verb of ["check", "inspect"]) {
      expect(await patchbay([verb, "net", "c2"], env)).toMatchObject({ code: 0 });
    }
  };
  await rightNow();
  expect(await patchbay(["del", "net", "c1"], env)).toMatchObject({ code: 0 });
  expect(await leases(POOL)).toBe(`${[two, four].sort().join("\n")}\n`);
  configureWith(HOST_LOCAL);
  await rightNow();
  expect(await patchbay(["del", "net", "c2"], env)).toMatchObject({ code: 0 });
  configureWith(OURS);
  expect(await patchbay(["del", "net", "c4"], env)).toMatchObject({ code: 0 });
  expect(await leases(POOL)).toBe("");
  expect(await cluster.keys("alarm")).toEqual([]);
});

test("what does not fit is refused before anything is done", async () => {
  await using cluster = await openCluster();
  const { machine, adopt, attach, leases } = await stage(cluster);
  configureWith(HOST_LOCAL);
  const one = await attach("c1");
  const nothing = async (pool: object, said: string) => {
    await cluster.write("pool/pods", { state: "closed", ...pool });
    const { code, stderr } = await adopt();
    expect([code, stderr]).toEqual([1, expect.stringContaining(said)]);
    expect([await leases(OLD), await leases("/run")]).toEqual([`${one}\n`, ""]);
  };
  await nothing(
    { layout: "routed", ranges: [{ cidr: "10.65.0.0/16", blockLength: 24 }] },
    `${OLD}/${one}, of`,
  );
  await nothing({ layout: "routed", ranges: [{ cidr: "10.64.0.0/16", blockLength: 17 }] }, "32768 addresses");
  await cluster.write("block/pods.3", { poolBirth: "1", index: 3, owner: { node: "n5", generation: 1, claim: "x" } });
  await nothing({ layout: "routed", ranges: RANGES }, "block/pods.3 is n5's in etcd");
  expect(await machine.sh(`ls -a ${OLD} | grep -c moved || true`)).toBe("0\n");
});

test("by hand: the leases go over, and it says what to write down", async () => {
  await using cluster = await openCluster();
  const { machine, n3, adopt, attach, leases } = await stage(cluster);
  const roster = "/run/roster";
  await machine.sh(
    `mkdir -p ${roster}/pools.d ${roster}/nodes.d; echo '${JSON.stringify({ layout: "routed", ranges: RANGES })}' ` +
      `>${roster}/pools.d/pods.json; echo '${
        JSON.stringify({ node: "n3", store: { roster: { directory: roster } } })
      }' >/run/nodes/n3/cluster.json`,
  );
  configureWith(HOST_LOCAL);
  const one = await attach("c1"), { stdout } = await adopt();
  expect(stdout).toContain('write into nodes.d/n3.json on every host: { "blocks": { "pods": [3] } }');
  expect(await leases(POOL)).toBe(`${one}\n`);
  await machine.sh(`echo '{ "blocks": { "pods": [3] } }' >${roster}/nodes.d/n3.json`);
  configureWith(OURS);
  await n3.start();
  await n3.until("pods", (served) => served?.blocks.served === 1);
  expect(await attach("c2")).not.toBe(one);
});
