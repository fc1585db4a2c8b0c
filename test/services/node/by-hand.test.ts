/** The agent where people write which blocks are whose: real files, and the program. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { servedRangesIn } from "../../support/served-pool.ts";
import { servedFrom, type ServedPool } from "../../../src/cluster/served-file.ts";

let machine: Machine;
const ETC = "/run/etc";

beforeAll(async () => {
  machine = await openMachine();
  await machine.sh(`mkdir -p ${ETC}/pools.d ${ETC}/nodes.d`);
  await write("cluster.json", { node: "n1", store: { roster: { directory: ETC } } });
  await write("pools.d/lan.json", {
    layout: "flat",
    ranges: [{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 }],
  });
});

afterAll(() => machine[Symbol.asyncDispose]());

async function write(name: string, value: unknown): Promise<void> {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  await machine.run(["sh", "-c", `cat > ${ETC}/${name}`], { stdin: text });
}

const sync = () => machine.run([PATCHBAY, "node", "sync", "--config", `${ETC}/cluster.json`]);

async function served(): Promise<ServedPool> {
  return servedFrom(await machine.sh("cat /run/patchbay/pool~lan"));
}

async function untilServed(first: string): Promise<void> {
  while (!servedRangesIn(await served()).some((span) => span.startsWith(first))) await Bun.sleep(100);
}

test("what the files say is served, and nothing more", async () => {
  await write("nodes.d/n1.json", { blocks: { lan: [0, 2] } });
  await write("nodes.d/n2.json", { blocks: { lan: [1] } });
  expect(await sync()).toMatchObject({ code: 0, stdout: "", stderr: "" });
  expect(servedRangesIn(await served())).toEqual(["10.1.0.2-10.1.0.16", "10.1.0.33-10.1.0.48"]);
  expect(await machine.sh("stat -c %a /run/patchbay/pool~lan /run/patchbay /var/lib/patchbay")).toBe(
    "600\n700\n700\n",
  );
});

test.each<[string, string, unknown, string]>([
  ["a block of two nodes", "nodes.d/n2.json", { blocks: { lan: [0] } }, "block 0 of pool lan stands in"],
  ["a file that is half copied", "nodes.d/n2.json", '{"blocks": {"lan', "/run/etc/nodes.d/n2.json: "],
  ["a pool that nobody knows", "nodes.d/n2.json", { blocks: { wan: [0] } }, '"blocks.wan": there is no such pool'],
])("%s: what was served stays, and the file says since when", async (_, name, value, reason) => {
  await write("nodes.d/n2.json", { blocks: { lan: [1] } });
  await sync();
  await write(name, value);
  const { code, stderr } = await machine.run(["timeout", "3", PATCHBAY, "node", "--config", `${ETC}/cluster.json`]);
  expect([code, stderr]).toEqual([124, expect.stringContaining(reason)]);
  const { silent, ...now } = await served();
  expect(silent?.why).toContain(reason);
  expect(servedRangesIn(now)).toEqual(["10.1.0.2-10.1.0.16", "10.1.0.33-10.1.0.48"]);
});

test("an agent that runs sees a changed file, and a pool that goes", async () => {
  await write("nodes.d/n2.json", { blocks: { lan: [1] } });
  const agent = machine.start([PATCHBAY, "node", "--config", `${ETC}/cluster.json`]);
  await untilServed("10.1.0.33");
  await write("nodes.d/n1.json", { blocks: { lan: [3] } });
  await untilServed("10.1.0.49");
  expect(servedRangesIn(await served())).toEqual(["10.1.0.49-10.1.0.64"]);
  await machine.sh(
    `rm ${ETC}/pools.d/lan.json; echo '{"blocks":{}}' | tee ${ETC}/nodes.d/n1.json ${ETC}/nodes.d/n2.json`,
  );
  await machine.sh("while test -e '/run/patchbay/pool~lan'; do sleep 0.1; done");
  agent.kill();
  await agent.exited;
});

test("a pool that is cut in another way while containers have its addresses: nothing of it counts", async () => {
  const pool = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", gateway: "10.1.0.1", blockSize: 16 }] };
  await write("pools.d/lan.json", pool);
  await write("nodes.d/n1.json", { blocks: { lan: [0] } });
  await sync();
  await machine.sh(
    "mkdir -p /var/lib/patchbay/pools/lan; printf 'c\\r\\neth0\\r\\nnet' > /var/lib/patchbay/pools/lan/10.1.0.2",
  );
  await write("pools.d/lan.json", { ...pool, ranges: [{ ...pool.ranges[0], blockSize: 32 }] });
  expect(await sync()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("the ranges of pool lan have become others"),
  });
  expect(servedRangesIn(await served())).toEqual(["10.1.0.2-10.1.0.16"]);
  await machine.sh("rm /var/lib/patchbay/pools/lan/10.1.0.2");
  expect((await sync()).code).toBe(0);
  expect(servedRangesIn(await served())).toEqual(["10.1.0.2-10.1.0.32"]);
});

test("a host without a file of its own: the sentence says what it has to be", async () => {
  await machine.sh(`mv ${ETC}/nodes.d/n1.json ${ETC}/n1`);
  expect(await sync()).toMatchObject({ code: 1, stderr: expect.stringContaining("have no nodes.d/n1.json") });
  expect(servedRangesIn(await served())).toEqual(["10.1.0.2-10.1.0.32"]);
  await machine.sh(`mv ${ETC}/n1 ${ETC}/nodes.d/n1.json`);
});

test("two agents of one host: the second says who has the lock", async () => {
  const agent = machine.start([PATCHBAY, "node", "--config", `${ETC}/cluster.json`]);
  await machine.sh("until ! flock -n /run/patchbay/node~lock true; do sleep 0.1; done");
  expect(await sync()).toMatchObject({
    code: 1,
    stderr:
      "patchbay node: /run/patchbay/node~lock is locked: another 'patchbay node' runs on this host: stop it first ('systemctl stop patchbay-node')\n",
  });
  agent.kill("SIGKILL");
  await agent.exited;
  expect((await sync()).code).toBe(0);
});

test.each<[string, unknown, string]>([
  ["an unknown key", { nodes: 1 }, "nodes"],
  ["two stores", { store: { roster: {}, etcd: {} } }, "store"],
  ["etcd without TLS", { store: { etcd: { endpoints: ["http://10.0.0.1:2379"] } } }, "is without TLS"],
  ["a name with capitals", { node: "N1" }, "small letters"],
  ["half a pair of files", { store: { etcd: { endpoints: ["https://e:1"], certFile: "/c" } } }, "store.etcd.keyFile"],
  ["no JSON", "{", "it is no JSON"],
])("a configuration with %s is refused with key and value", async (_, value, reason) => {
  await write("other.json", value);
  const { code, stderr } = await machine.run([PATCHBAY, "node", "sync", "--config", `${ETC}/other.json`]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`${ETC}/other.json: `)]);
  expect(stderr).toContain(reason);
});
