/**
 * Ten machines, each with an agent, a bridge and a network namespace for each container; etcd with client certificates on
 * an eleventh. A pool has exactly as many addresses as there are containers, and every container gets one, twice in a row.
 * What the kernels say is looked at. It prints how long it took: nobody schedules here.
 */
import { expect, test } from "bun:test";
import { Certificates } from "../../support/certificates.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { startResident } from "../../support/resident.ts";

const MOST = 1000, MACHINES = 10, AT_ONCE = 2, BLOCK = 25, STORE = "10.99.0.250", ENDPOINT = `https://${STORE}:2379`;
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

/** Calls from a shell on the machine, as an engine would: what is measured is the plugin and not this test. */
const script = (command: "ADD" | "DEL") => `
export CNI_COMMAND=${command} CNI_IFNAME=eth0 CNI_PATH=${patchbayPlugins()}
calls() {
  for name in "$@"; do
    until CNI_CONTAINERID=$name CNI_NETNS=/run/netns/$name ${patchbayPlugins()}/bridge </run/conf >/run/said.$name; do
      grep -q '"code": *11,' /run/said.$name || { cat /run/said.$name >&2; exit 1; }
      echo again
      sleep 0.1
    done
  done
}`;

/** On every machine some at once; returns how often it had to be called again. */
async function onAll(hosts: readonly Host[], command: "ADD" | "DEL"): Promise<number> {
  const again = await Promise.all(hosts.map(async ({ machine, containers }) => {
    const shares = Array.from(
      { length: AT_ONCE },
      (_, share) => containers.filter((_, at) => at % AT_ONCE === share).join(" "),
    );
    const begun = shares.map((names) => `calls ${names} & all="$all $!"`).join("\n");
    return await machine.sh(`${script(command)}\n${begun}\nfor one in $all; do wait $one || exit 1; done`);
  }));
  return again.join("").split("\n").length - 1;
}

async function addressesOf({ machine, containers }: Host): Promise<string[]> {
  const script = `for name in ${containers.join(" ")}; do ip -n $name -o -4 address show scope global; done`;
  return [...(await machine.sh(script)).matchAll(/inet (\S+)/g)].map(([, address]) => address!);
}

test.each(["by themselves", "through residents"])(
  "calls %s: every container gets one of as many addresses, twice",
  async (how) => {
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
        if (how === "through residents") agents.push(await startResident(machine));
        await machine.run(["sh", "-c", "cat >/run/conf"], { stdin: JSON.stringify(conf) });
        await machine.sh(`for name in ${containers.join(" ")}; do ip netns add $name; done`);
        await machine.sh("until test -e '/run/patchbay/pool~lan'; do sleep 0.1; done");
        return { machine, containers };
      }));
      // A claim of the first ten seconds has to ripen.
      await Bun.sleep(10_000);
      for (const round of ["first", "second"]) {
        const begun = performance.now(),
          again = await onAll(hosts, "ADD"),
          seconds = (performance.now() - begun) / 1000;
        console.log(
          `${MOST} containers on ${MACHINES} machines, ${how}, ${round} time: ${
            seconds.toFixed(1)
          } s, ${again} calls for a block that was not there yet`,
        );
        const addresses = (await Promise.all(hosts.map(addressesOf))).flat();
        expect([addresses.length, new Set(addresses).size]).toEqual([MOST, MOST]);
        await onAll(hosts, "DEL");
        expect((await Promise.all(hosts.map(addressesOf))).flat()).toEqual([]);
      }
      for (const machine of machines) {
        expect(await machine.sh("ls /var/lib/patchbay/pools/lan | grep -c '^10[.]' || true")).toBe("0\n");
      }
    } finally {
      for (const agent of agents) agent.kill("SIGKILL");
      await Promise.all(agents.map((agent) => agent.exited));
      await Promise.all(machines.map((machine) => machine[Symbol.asyncDispose]()));
    }
  },
  600_000,
);
