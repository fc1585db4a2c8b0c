/** Whereabouts' addresses are excluded from a pool in a real etcd, until none is in use; files that are wrong change nothing. */
import { expect, test } from "bun:test";
import { type Cluster, ENDPOINT, openCluster } from "../../support/cluster.ts";
import { commandsOn, networkFiles } from "../../support/commands.ts";

const { directory } = networkFiles();

const usedBy = (offsets: readonly number[]) => ({
  items: [{
    apiVersion: "whereabouts.cni.cncf.io/v1alpha1",
    kind: "IPPool",
    metadata: { name: "10.0.0.0-24" },
    spec: {
      range: "10.0.0.0/24",
      allocations: Object.fromEntries(offsets.map((offset) => [offset, { podref: "a/b" }])),
    },
  }],
});

function commands({ machine }: Cluster) {
  const { patchbay } = commandsOn(() => machine, () => directory);
  const put = (path: string, text: string) => machine.run(["sh", "-c", `cat >${path}`], { stdin: text });
  const importing = async (offsets: readonly number[] | string, ...more: string[]) => {
    await put("/run/used.json", typeof offsets === "string" ? offsets : JSON.stringify(usedBy(offsets)));
    return await patchbay([
      "ipam",
      "import",
      "whereabouts",
      "--file",
      "/run/used.json",
      "--config",
      "/run/c.json",
      ...more,
    ]);
  };
  return { patchbay, put, importing, machine };
}

test("a pool that excludes what is in use, less each time; what is given out after the pool was made is a stop", async () => {
  await using cluster = await openCluster();
  const { put, importing, machine } = commands(cluster);
  await put("/run/c.json", JSON.stringify({ node: "n1", store: { etcd: { endpoints: [ENDPOINT] } } }));
  const keep = ["--exclude", "10.0.0.254"];
  const printed = await importing([1, 2, 3, 9], "--gateway", "10.0.0.1", "--block-size", "32", ...keep);
  expect([printed.code, printed.stderr]).toEqual([0, "4 of its addresses are in use, and excluded\n"]);
  const exclude = ["10.0.0.1", "10.0.0.2/31", "10.0.0.9", "10.0.0.254"];
  expect(JSON.parse(printed.stdout)).toEqual({
    layout: "flat",
    ranges: [{ cidr: "10.0.0.0/24", gateway: "10.0.0.1", blockSize: 32, exclude }],
  });
  const unknown = await importing([1], "--pool", "lan");
  expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringContaining("there is no pool lan")]);
  await put("/run/pool.json", printed.stdout);
  await machine.sh(`${process.cwd()}/dist/patchbay pool add lan /run/pool.json --config /run/c.json`);
  const excluded = async () => ((await cluster.record("pool/lan"))!["ranges"] as { exclude: string[] }[])[0]!.exclude;

  const later = await importing([1, 2, 9, 40], "--pool", "lan", ...keep);
  expect([later.code, later.stderr]).toEqual([
    1,
    expect.stringContaining("10.0.0.40 is in use, and pool lan does not"),
  ]);
  expect(await excluded()).toEqual(exclude);
  expect((await importing([9], "--pool", "lan", ...keep)).stdout).toContain(
    "excludes 2 subnets (4 before), with all 1 ",
  );
  expect(await excluded()).toEqual(["10.0.0.9", "10.0.0.254"]);
  expect((await importing([], "--pool", "lan", ...keep)).stdout).toContain("it can be removed");
  expect(await excluded()).toEqual(["10.0.0.254"]);
});

test("what is wrong names the file, and changes nothing", async () => {
  await using cluster = await openCluster();
  const { put, importing, patchbay } = commands(cluster);
  await put("/run/c.json", JSON.stringify({ node: "n1", store: { etcd: { endpoints: [ENDPOINT] } } }));
  await cluster.write("pool/lan", {
    layout: "flat",
    ranges: [{ cidr: "10.0.0.0/24", blockSize: 16, exclude: ["10.0.0.9"] }],
  });
  const before = await cluster.record("pool/lan");
  for (
    const [text, said] of [
      ["", "/run/used.json: it is no JSON"],
      [JSON.stringify(usedBy([256])), '/run/used.json: "items[0].spec.allocations.256": it is not in 10.0.0.0/24'],
      ["[".repeat(1024 * 1024), "/run/used.json: "],
      [JSON.stringify("x".repeat(1024 * 1024)), "/run/used.json: "],
      ["x".repeat(17 * 1024 * 1024), "/run/used.json"],
    ] as const
  ) {
    const { code, stderr } = await importing(text, "--pool", "lan");
    expect([code, stderr]).toEqual([1, expect.stringContaining(said)]);
    expect(stderr.length).toBeLessThan(800);
    const nv = await patchbay(["node", "import", "nv-ipam", "--file", "/run/used.json"]);
    expect([nv.code, nv.stdout]).toEqual([1, ""]);
  }
  expect((await importing([9], "--pool", "lan", "--gateway", "10.0.0.1")).code).toBe(2);
  expect(await cluster.record("pool/lan")).toEqual(before);
});
