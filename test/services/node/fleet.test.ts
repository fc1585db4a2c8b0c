/**
 * Ten machines, each with an agent, a bridge and a network namespace for each container; etcd with client certificates on
 * an eleventh. A pool has exactly as many addresses as there are containers, and every container gets one, twice in a row.
 * What the kernels say is looked at. It prints how long it took: nobody schedules here.
 */
import { expect, test } from "bun:test";
import { Certificates } from "../../support/certificates.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";

const MOST = 1000, MACHINES = 10, AT_ONCE = 2, BLOCK = 10, STORE = "10.99.0.250", ENDPOINT = `https://${STORE}:2379`;
const each = MOST / MACHINES;

/** All machines are on one segment, which the store's machine has as a bridge. */
async function connect(store: Machine, machines: readonly Machine[]): Promise<void> {
  await store.sh(`ip link add seg type bridge; ip link set seg up; ip address add ${STORE}/24 dev seg`);
  for (const [index, machine] of machines.entries()) {
    await store.sh(
      `ip link add p${index} type veth peer name up0 netns ${machine.pid}; ip link set p${index} master seg up`,
    );
    await machine.sh(`ip address add 10.99.0.${index + 1}/24 dev up0; ip link set up0 up`);
  }
}

async function startEtcd(store: Machine, certificates: Certificates, authority: { certFile: string }) {
  const own = certificates.signedBy(authority as never, { names: [`IP:${STORE}`, "IP:127.0.0.1"] });
  const tls = ["--cert-file", own.certFile, "--key-file", own.keyFile, "--client-cert-auth", "--trusted-ca-file"];
  const etcd = store.start([
    ...["etcd", "--data-dir", "/run/etcd", "--log-level", "error", ...tls, authority.certFile],
    ...["--listen-client-urls", ENDPOINT, "--advertise-client-urls", ENDPOINT],
    ...["--listen-peer-urls", "http://127.0.0.1:2380"],
  ]);
  const ctl = (words: string) =>
    `ETCDCTL_API=3 etcdctl --endpoints ${ENDPOINT} --cacert ${authority.certFile} --cert ${own.certFile} --key ${own.keyFile} ${words}`;
  await store.sh(`until ${ctl("endpoint health >/dev/null 2>&1")}; do sleep 0.1; done`);
  return { etcd, ctl };
}

interface Host {
  machine: Machine;
  containers: string[];
}

const conf = {
  cniVersion: "1.1.0",
  name: "net",
  type: "bridge",
  bridge: "br0",
  ipam: { type: "patchbay-cluster", pool: "lan" },
};

async function call(machine: Machine, command: "ADD" | "DEL", name: string) {
  const container = { name, netnsPath: `/run/netns/${name}` };
  return await cni(machine, patchbayPlugins(), { plugin: "bridge", command, conf, container });
}

/** On every machine some at once; returns the number of calls. */
async function onAll(hosts: readonly Host[], work: (machine: Machine, name: string) => Promise<number>) {
  let calls = 0;
  await Promise.all(hosts.flatMap(({ machine, containers }) => {
    const queue = [...containers];
    return Array.from({ length: AT_ONCE }, async () => {
      for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
        const made = await work(machine, name);
        calls += made;
      }
    });
  }));
  return calls;
}

async function attach(machine: Machine, name: string): Promise<number> {
  for (let calls = 1;; calls++) {
    const { code, json } = await call(machine, "ADD", name);
    if (code === 0) return calls;
    if (json.code !== 11) throw new Error(`ADD of ${name}: ${JSON.stringify(json)}`);
    await Bun.sleep(100);
  }
}

async function detach(machine: Machine, name: string): Promise<number> {
  const { code, stdout } = await call(machine, "DEL", name);
  if (code !== 0) throw new Error(`DEL of ${name}: ${stdout}`);
  return 1;
}

async function addressesOf({ machine, containers }: Host): Promise<string[]> {
  const script = containers.map((name) => `ip -n ${name} -o -4 address show dev eth0 2>/dev/null || true`).join("\n");
  return [...(await machine.sh(script)).matchAll(/inet (\S+)/g)].map(([, address]) => address!);
}

test("every container gets one of exactly as many addresses, twice in a row", async () => {
  using certificates = new Certificates();
  const authority = certificates.authority("ca");
  await using store = await openMachine();
  const machines = await Promise.all(Array.from({ length: MACHINES }, () => openMachine()));
  const agents: ReturnType<Machine["start"]>[] = [];
  try {
    await connect(store, machines);
    const { etcd, ctl } = await startEtcd(store, certificates, authority);
    agents.push(etcd);
    const last = `10.50.${MOST >> 8}.${MOST & 255}`;
    const pool = { layout: "flat", spare: 0, ranges: [{ cidr: "10.50.0.0/16", to: last, blockSize: BLOCK }] };
    await store.sh(ctl(`put /patchbay/pool/lan '${JSON.stringify(pool)}'`));
    const hosts = await Promise.all(machines.map(async (machine, index): Promise<Host> => {
      const own = certificates.signedBy(authority, { names: [`DNS:n${index}`] });
      const file = certificates.file(
        `n${index}.json`,
        JSON.stringify({
          node: `n${index}`,
          store: { etcd: { endpoints: [ENDPOINT], caFile: authority.certFile, ...own } },
        }),
      );
      agents.push(machine.start([PATCHBAY, "node", "--config", file]));
      const containers = Array.from({ length: each }, (_, at) => `c${at}`);
      await machine.sh(`for name in ${containers.join(" ")}; do ip netns add $name; done`);
      await machine.sh("until test -e '/run/patchbay/pool~lan'; do sleep 0.1; done");
      return { machine, containers };
    }));
    // A claim of the first ten seconds has to ripen.
    await Bun.sleep(10_000);
    for (const round of ["first", "second"]) {
      const begun = performance.now(),
        calls = await onAll(hosts, attach),
        seconds = (performance.now() - begun) / 1000;
      console.log(
        `${MOST} containers on ${MACHINES} machines, ${round} time: ${seconds.toFixed(1)} s, ${calls} calls`,
      );
      const addresses = (await Promise.all(hosts.map(addressesOf))).flat();
      expect([addresses.length, new Set(addresses).size]).toEqual([MOST, MOST]);
      await onAll(hosts, detach);
      expect((await Promise.all(hosts.map(addressesOf))).flat()).toEqual([]);
    }
    expect(await machines[0]!.sh("find /var/lib/patchbay/pools/lan -name '10.*' | wc -l")).toBe("0\n");
  } finally {
    for (const agent of agents) agent.kill("SIGKILL");
    await Promise.all(agents.map((agent) => agent.exited));
    await Promise.all(machines.map((machine) => machine[Symbol.asyncDispose]()));
  }
}, 600_000);
