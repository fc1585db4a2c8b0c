/**
 * Attachments come and go on several nodes while the store and the agents have a bad day: no address is given twice, and
 * none is lost. IPAM calls of the program alone, because the network of a container does not matter here.
 */
import { expect, test } from "bun:test";
import { type Cluster, type ClusterHost, openCluster } from "../../support/cluster.ts";
import { cni, patchbayPlugins } from "../../support/plugins.ts";
import { random } from "../../support/random.ts";

const NODES = ["n1", "n2", "n3", "n4", "n5"], ATTACHMENTS = 200, AT_ONCE = 4;
const POOL = { layout: "flat", ranges: [{ cidr: "10.1.0.0/24", blockSize: 4 }] };

const below = (count: number) => Math.floor(random() * count);

interface Fleet {
  cluster: Cluster;
  hosts: ClusterHost[];
  /** Who has it now. */
  taken: Map<string, string>;
  twice: string[];
  added: number;
}

async function call(fleet: Fleet, host: ClusterHost, command: "ADD" | "DEL", containerId: string) {
  const conf = {
    cniVersion: "1.1.0",
    name: "net",
    type: "bridge",
    ipam: { type: "patchbay-cluster", pool: "lan", dataDir: `${host.kept}/pools` },
  };
  return await cni(fleet.cluster.machine, patchbayPlugins(), {
    plugin: "patchbay-cluster",
    command,
    conf,
    containerId,
    env: { ...host.environment, CNI_NETNS: "/run/netns/c", CNI_IFNAME: "eth0" },
  });
}

/** An engine tries again what may succeed later. */
async function attach(fleet: Fleet, host: ClusterHost, containerId: string): Promise<string> {
  for (;;) {
    const { code, json } = await call(fleet, host, "ADD", containerId);
    if (code === 0) return json.ips[0].address;
    if (json.code !== 11) throw new Error(`ADD of ${containerId}: ${JSON.stringify(json)}`);
    await Bun.sleep(100 + below(200));
  }
}

async function work(fleet: Fleet, host: ClusterHost, worker: number): Promise<void> {
  for (let count = 0; count < ATTACHMENTS / NODES.length / AT_ONCE; count++) {
    const containerId = `${host.name}-${worker}-${count}`, address = await attach(fleet, host, containerId);
    fleet.added++;
    if (fleet.taken.has(address)) fleet.twice.push(`${address}: ${fleet.taken.get(address)} and ${containerId}`);
    fleet.taken.set(address, containerId);
    await Bun.sleep(below(1500));
    if (fleet.taken.get(address) === containerId) fleet.taken.delete(address);
    const gone = await call(fleet, host, "DEL", containerId);
    if (gone.code !== 0) fleet.twice.push(`DEL of ${containerId}: ${gone.stdout}`);
  }
}

/** Until all is done, one mishap after the other. */
async function mishaps({ cluster, hosts }: Fleet, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    await Bun.sleep(500 + below(1000));
    const host = hosts[below(hosts.length)]!, kind = below(4);
    if (kind === 0) {
      await host.kill();
      await Bun.sleep(below(1500));
      await host.start();
    } else if (kind === 1) {
      cluster.signalStore("SIGSTOP");
      await Bun.sleep(below(4000));
      cluster.signalStore("SIGCONT");
    } else if (kind === 2) {
      cluster.signalStore("SIGKILL");
      await Bun.sleep(below(3000));
      await cluster.startStore();
    } else await cluster.compact();
  }
}

test(
  "a store that is killed, stopped and compacted, agents that are killed: no address twice, none lost",
  async () => {
    await using cluster = await openCluster();
    await cluster.machine.sh("ip netns add c");
    await cluster.write("pool/lan", POOL);
    const hosts = await Promise.all(NODES.map((name) => cluster.node(name)));
    for (const host of hosts) await host.start();
    for (const host of hosts) await host.until("lan", (served) => served !== undefined && served.blocks.served > 0);
    const fleet: Fleet = { cluster, hosts, taken: new Map(), twice: [], added: 0 };
    let isDone = false;
    const trouble = mishaps(fleet, () => isDone);
    await Promise.all(
      hosts.flatMap((host) => Array.from({ length: AT_ONCE }, (_, worker) => work(fleet, host, worker))),
    );
    isDone = true;
    await trouble;
    expect(fleet.twice).toEqual([]);
    expect(fleet.added).toBe(ATTACHMENTS);
    const leases = await cluster.machine.sh("find /run/nodes -path '*/pools/lan/10.*' | wc -l");
    expect(leases.trim()).toBe("0");

    // Each block has the owner that serves it, or is free.
    for (const host of hosts) {
      await host.until("lan", (served) => served?.silent === undefined && served?.blocks.served === 1);
    }
    const owners = new Map<string, string>();
    for (const key of await cluster.keys("block/")) {
      const owner = (await cluster.record(key))?.["owner"] as { node: string } | undefined;
      if (owner !== undefined) owners.set(key, owner.node);
    }
    expect([...owners.values()].sort()).toEqual(NODES);
  },
  600_000,
);
