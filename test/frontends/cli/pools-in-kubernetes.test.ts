/** The commands on pools and nodes where the records are in Kubernetes, by a fake API server: the same as with etcd. */
import { afterAll, expect, test } from "bun:test";
import { openKubernetes } from "../../../src/cluster-stores/kubernetes.ts";
import { poolFrom } from "../../../src/cluster/pool-decoding.ts";
import { birthOf } from "../../../src/cluster/pool.ts";
import { blockKey, nodeKey } from "../../../src/cluster/records.ts";
import { askingOf, installKinds } from "../../support/kubernetes/asking.ts";
import { fakeCluster } from "../../support/kubernetes/fake-cluster.ts";
import { PATCHBAY } from "../../support/plugins.ts";

const cluster = await fakeCluster(), store = openKubernetes({ kubeconfig: cluster.kubeconfig });
afterAll(() => {
  store.close();
  cluster[Symbol.dispose]();
});
await installKinds(askingOf(cluster));

const configFor = (kubeconfig: string, name: string) =>
  cluster.certificates.file(name, JSON.stringify({ node: "n1", store: { kubernetes: { kubeconfig } } }));
const CONFIG = configFor(cluster.kubeconfig, "cluster.json");

/** The server is this process: it must not wait. */
async function ask(words: string, config = CONFIG) {
  const run = Bun.spawn([PATCHBAY, ...words.split(" "), "--config", config], {
    stdout: "pipe",
    stderr: "pipe",
    env: {},
  });
  const [stdout, stderr] = await Promise.all([run.stdout.text(), run.stderr.text()]);
  return { code: await run.exited, stdout, stderr };
}

const put = async (key: string, value: Parameters<typeof store.put>[2]) =>
  expect(await store.put(key, undefined, value)).toMatchObject({ won: {} });

test("pools: added, shown, closed and opened", async () => {
  expect((await ask("pool list")).stdout).toStartWith("no pool in ");
  expect(await ask("pool add lan --subnet 10.0.0.0/24 --gateway 10.0.0.1 --block-size 64")).toEqual({
    code: 0,
    stdout: "pool lan is added: 3 blocks of 64 addresses\n",
    stderr: "62 addresses, 10.0.0.193 to 10.0.0.254, are behind the last whole block: nobody gets them\n",
  });
  expect((await ask("pool add lan --subnet 10.0.0.0/24 --block-size 64")).stderr).toStartWith(
    "patchbay pool: pool lan is there already\n",
  );
  const { birth: made, value } = (await store.read("pool/lan"))!, birth = birthOf(made, poolFrom("lan", value));
  await put(nodeKey("n1"), { generation: 1, machine: "0123456789abcdef", boot: "b", state: "joined" });
  await put(blockKey("lan", 1), { poolBirth: birth, index: 1, owner: { node: "n1", generation: 1, claim: "c" } });
  expect((await ask("pool show lan")).stdout).toEndWith(
    "blocks  addresses              node  state\n" +
      "0       10.0.0.1-10.0.0.64     -     free\n" +
      "1       10.0.0.65-10.0.0.128   n1    owned\n" +
      "2       10.0.0.129-10.0.0.192  -     free\n",
  );
  expect((await ask("pool close lan")).stdout).toBe("pool lan is closed\n");
  expect((await store.read("pool/lan"))!.value).toMatchObject({ state: "closed" });
  expect((await ask("pool close lan --undo")).stdout).toBe("pool lan is open\n");
});

test("nodes: listed, drained, and the end of an alarm", async () => {
  await put(nodeKey("n2"), { generation: 1, machine: "0123456789abcdee", boot: "b", state: "joined" });
  expect((await ask("node list")).stdout).toContain("\nn2    joined  1           01234567  b     -\n");
  expect((await ask("node drain n2")).code).toBe(0);
  expect((await store.read(nodeKey("n2")))!.value).toMatchObject({ state: "draining" });
  await put("alarm", { by: "n1", saw: "block/lan.1 is that of an earlier time" });
  expect((await ask("node list")).stdout).toStartWith("ALARM: n1 has seen: block/lan.1 is that of an earlier time\n");
  expect((await ask("ipam show --all")).stdout).toEndWith("lan   1       10.0.0.65-10.0.0.128  n1    owned\n");
});

test("who may do nothing is told what to apply, and who asks nobody, whom", async () => {
  const stranger = configFor(cluster.kubeconfigFor("the-strangers"), "stranger.json");
  const { code, stdout, stderr } = await ask("pool add wan --subnet 10.9.0.0/24 --block-size 8", stranger);
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("stranger");
  expect(await store.read("pool/wan")).toBeUndefined();
});
