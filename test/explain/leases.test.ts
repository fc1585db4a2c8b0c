/** What `explain --all` says of leases: wherever the network keeps them, and whatever else is beside them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { overview } from "../../src/explain/explanation.schema.ts";
import { commandsOn } from "../support/commands.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { POOLS, serve } from "../support/served-pool.ts";

let machine: Machine;
const directory = mkdtempSync(`${tmpdir()}/leases-`);
const { patchbay, must } = commandsOn(() => machine, () => directory);
const FARM = "farm";
const LEASES = "/var/lib/cni/networks", ELSEWHERE = "/run/leases";

beforeAll(async () => {
  machine = await openMachine();
  for (const [name, subnet, dataDir] of [["shop", "10.40.0.0/24"], ["farm", "10.41.0.0/24", ELSEWHERE]]) {
    const ipam = { type: "host-local", ranges: [[{ subnet }]], routes: [{ dst: "0.0.0.0/0" }], dataDir };
    const plugins = [{ type: "bridge", bridge: `${name}0`, isGateway: true, ipam }];
    writeFileSync(`${directory}/${name}.conflist`, JSON.stringify({ cniVersion: "1.1.0", name, plugins }));
  }
  for (const name of ["web", "far"]) await machine.container(name);
  await must("add", "shop", "web", "--container-id", "0123456789abcdef".repeat(4));
  await must("add", "farm", "far");
});
afterAll(async () => {
  await machine[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true });
});

async function findings() {
  const { stdout, stderr } = await patchbay(["explain", "--all", "--json"]);
  expect(stderr).toBe("");
  return overview.parse(JSON.parse(stdout)).host;
}

test("directories that are no networks', and links, are passed over", async () => {
  expect(await findings()).toEqual([]);
  await machine.sh(`cd ${LEASES}; mkdir lost+found .snapshot; ln -s shop loop; mkfifo pipe; echo >file`);
  expect(await findings()).toEqual([]);
  await machine.sh(`cd ${LEASES}; rm -r lost+found .snapshot loop pipe file`);
});

test("a network's own directory is the one that counts", async () => {
  // Another program's leases of a network of that name.
  await machine.sh(`mkdir ${LEASES}/${FARM}; printf 'other\\r\\neth0' >${ELSEWHERE}/${FARM}/10.41.0.77`);
  expect(await findings()).toEqual([{
    code: "lease-unheld",
    text: "1 lease of farm without an attachment on record, such as 10.41.0.77 of other: " +
      `'patchbay ipam list farm --data-dir ${ELSEWHERE}'`,
  }]);
  await machine.sh(`rmdir ${LEASES}/${FARM}; rm ${ELSEWHERE}/${FARM}/10.41.0.*`);
  expect(await findings()).toMatchObject([{ code: "lease-missing", text: expect.stringContaining(" of far (") }]);
});

test("a container is named as people name it", async () => {
  await machine.sh(`rm ${LEASES}/shop/10.40.0.2`);
  expect((await findings()).map(({ text }) => text)).toContain(
    "10.40.0.2 of web (0123456789ab), network shop, has no lease of its own: another may get it",
  );
});

test("a lease of a pool says its network", async () => {
  const name = "pooled", ipam = { type: "patchbay-cluster", pool: "lan" };
  const plugins = [{ type: "bridge", bridge: "pooled0", ipam }];
  writeFileSync(`${directory}/${name}.conflist`, JSON.stringify({ cniVersion: "1.1.0", name, plugins }));
  await serve(machine, { routes: [{ dst: "0.0.0.0/0" }] });
  await machine.container("pod");
  const before = await findings();
  await must("add", name, "pod");
  await machine.sh(`printf 'printer' >${POOLS}/lan/10.50.0.30; mkdir ${POOLS}/lost+found`);
  const since = async () => (await findings()).filter(({ text }) => before.every((one) => one.text !== text));
  expect((await since()).filter(({ code }) => code.startsWith("lease"))).toEqual([]);
  await machine.sh(`for n in 25; do printf 'lost\\r\\neth0\\r\\nother' >${POOLS}/lan/10.50.0.$n; done`);
  const leases = async () =>
    (await since()).filter(({ code }) => code.startsWith("lease")).map(({ code, text }) => `${code}: ${text}`);
  expect(await leases()).toEqual([
    "lease-unheld: 1 lease of other without an attachment on record, such as 10.50.0.25 of lost: 'patchbay ipam list other'",
  ]);
  await machine.sh(`rm ${POOLS}/lan/10.50.0.2?; printf 'lost\\r\\neth0\\r\\npooled' >${POOLS}/lan/10.50.0.16`);
  expect(await leases()).toEqual([
    "lease-unheld: 1 lease of pooled without an attachment on record, such as 10.50.0.16 of lost: " +
    "'patchbay ipam list pooled'",
    expect.stringMatching(/^lease-missing: 10\.50\.0\.16 of pod.*, and lost has one for it: another may get it$/),
  ]);
});
