/** What ADD meets while an agent runs, or cannot: a pool that is new in the store, and a store that is away for a day. */
import { expect, test } from "bun:test";
import { type Cluster, type ClusterHost, openCluster } from "../../support/cluster.ts";
import { patchbayPlugins } from "../../support/plugins.ts";

const flat = (subnet: string, more: object) => ({
  layout: "flat",
  ranges: [{ cidr: subnet, blockSize: 16 }],
  ...more,
});

/** On the host's clock; the answer of the IPAM plugin. */
async function call({ kept, inside }: ClusterHost, command: "ADD" | "DEL", name: string, pool: string) {
  const ipam = { type: "patchbay-cluster", pool, dataDir: `${kept}/pools` };
  const conf = JSON.stringify({ cniVersion: "1.1.0", name: "net", type: "bridge", ipam });
  const variables = `CNI_COMMAND=${command} CNI_CONTAINERID=${name} CNI_IFNAME=eth0 CNI_NETNS=/dev/null`;
  const said = await inside(
    `echo '${conf}' | env ${variables} CNI_PATH=${patchbayPlugins()} ${patchbayPlugins()}/patchbay-cluster || true`,
  );
  return said === "" ? {} : JSON.parse(said);
}

async function addressOf(host: ClusterHost, name: string, pool = "lan"): Promise<string> {
  const answer = await call(host, "ADD", name, pool);
  if (answer.ips === undefined) throw new Error(JSON.stringify(answer));
  return answer.ips[0].address;
}

async function started(cluster: Cluster): Promise<ClusterHost> {
  const n1 = await cluster.node("n1");
  await n1.start();
  return n1;
}

test("a pool that is new in the store is there a moment after the first ADD that wants it", async () => {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", flat("10.1.0.0/24", {}));
  const n1 = await started(cluster);
  await n1.until("lan", (served) => served !== undefined && served.blocks.served > 0);
  // There is no such pool.
  expect(await call(n1, "ADD", "c1", "nowhere")).toMatchObject({ code: 11 });
  await cluster.write("pool/late", flat("10.2.0.0/24", { spare: 0 }));
  while ((await call(n1, "ADD", "c1", "late")).code === 11) await Bun.sleep(300);
  expect(await addressOf(n1, "c2", "late")).toStartWith("10.2.0.");
  expect(await n1.served("nowhere")).toBeUndefined();
});

test("a store that is away for a day: nobody who gets an address notices", async () => {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", flat("10.1.0.0/24", { spare: 2 }));
  const n1 = await started(cluster);
  await n1.until("lan", (served) => served?.blocks.served === 2);
  const running = [await addressOf(n1, "before")];
  cluster.signalStore("SIGKILL");
  await n1.until("lan", (served) => served?.silent !== undefined);
  for (let hour = 1; hour <= 24; hour++) {
    n1.passTime(3600);
    // Its own clock goes on only when it starts: four times a day.
    if (hour % 6 === 0) {
      await n1.kill();
      await n1.start();
    }
    running.push(await addressOf(n1, `c${hour}`));
    await addressOf(n1, `short${hour}`);
    await call(n1, "DEL", `short${hour}`, "lan");
  }
  expect(new Set(running).size).toBe(25);
  for (let more = 0;; more++) {
    const answer = await call(n1, "ADD", `more${more}`, "lan");
    if (answer.ips !== undefined) continue;
    expect(answer).toMatchObject({
      code: 11,
      msg: expect.stringContaining("addresses in the 2 blocks of this node n1"),
    });
    const [, seconds] = answer.details.match(/has not answered for (\d+) s/);
    expect(Number(seconds)).toBeGreaterThanOrEqual(24 * 3600);
    break;
  }
  await cluster.startStore();
  while ((await call(n1, "ADD", "after", "lan")).code === 11) await Bun.sleep(300);
  const all = await n1.inside(`cd ${n1.kept}/pools/lan && ls | grep -c '^10[.]'`);
  expect(Number(all)).toBeGreaterThan(25);
  expect(await cluster.keys("alarm")).toEqual([]);
});

/** In front of the store: each piece of an answer comes so much later. */
const SLOW = `Bun.listen({ hostname: "127.0.0.1", port: 2390, socket: {
  async open(client) {
    client.early = [];
    client.server = await Bun.connect({ hostname: "127.0.0.1", port: 2379, socket: {
      data: (_, bytes) => void setTimeout(() => client.write(bytes), 800),
    } });
    for (const bytes of client.early) client.server.write(bytes);
  },
  data: (client, bytes) => client.server?.write(bytes) ?? client.early.push(bytes),
} }); await Bun.sleep(1e9);`;

test("a store that is too slow for a block to be confirmed: nothing is served, and the log says why", async () => {
  await using cluster = await openCluster();
  await cluster.write("pool/lan", flat("10.1.0.0/24", {}));
  const slow = cluster.machine.start([process.execPath, "-e", SLOW]);
  try {
    const n1 = await cluster.node("n1", { store: { etcd: { endpoints: ["http://127.0.0.1:2390"] } } });
    await n1.start();
    const log =
      /^patchbay node: block\/lan\.\d+ is not served: the store took 2\.\d s to confirm it, and 2 s are allowed$/m;
    while (!log.test(await n1.said())) await Bun.sleep(200);
    expect((await n1.served("lan"))!.blocks).toMatchObject({ served: 0, ripening: 1 });
  } finally {
    slow.kill("SIGKILL");
    await slow.exited;
  }
});
