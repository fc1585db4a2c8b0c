/** Commands that change the machine do all of it, whether or not somebody reads what they print. */
import { expect, test } from "bun:test";
import { CONFIGS, writeNetwork } from "../../support/hooked.ts";
import { type Machine, openMachine, type Outcome } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine;

/** Each run begins with the same: two containers on a network. */
async function inMachine<T>(work: () => Promise<T>): Promise<T> {
  await using own = await openMachine();
  machine = own;
  const ipam = { type: "host-local", subnet: "10.9.0.0/24" };
  await writeNetwork(machine, "net", [{ type: "bridge", bridge: "br0", isGateway: true, ipam }]);
  for (const name of ["c1", "c2"]) {
    await machine.container(name);
    await must(`add net ${name} --container-id ${name}`);
  }
  await machine.sh("mkdir /run/bin");
  return await work();
}

const run = (script: string): Promise<Outcome> =>
  machine.run(["sh", "-c", script.replaceAll("patchbay", PATCHBAY)], { env: { NETCONFPATH: CONFIGS } });
async function must(words: string): Promise<string> {
  const outcome = await run(`patchbay ${words}`);
  expect({ words, ...outcome }).toMatchObject({ words, code: 0 });
  return outcome.stdout;
}

const GONE = "ip netns del c1; ip netns del c2;";
const LEASES = "ls /var/lib/cni/networks/net";
const detached = "patchbay del net c1; patchbay del net c2;";
const CLUSTER = "/run/cluster.json", ENDPOINT = "http://127.0.0.1:2379";
/** A store of a cluster, until `records` has been asked. */
const etcd = (more = "") =>
  "export ETCDCTL_API=3; etcd --data-dir /run/etcd >/dev/null 2>&1 & echo $! >/run/etcd.pid; " +
  "until etcdctl endpoint health >/dev/null 2>&1; do sleep 0.1; done; " +
  `echo '{"store":{"etcd":{"endpoints":["${ENDPOINT}"],"prefix":"/cluster/"}}}' >${CLUSTER}; ${more}`;
const records = "ETCDCTL_API=3 etcdctl get --prefix /cluster/; kill $(cat /run/etcd.pid)";
/** Shell commands: what is there before, the command, and what then prints the state that it was to reach. */
const commands: [words: string, before: string, state: string][] = [
  ["install /run/bin", "", "ls /run/bin"],
  ["install --bin /run/other --podman=/run/podman /run/bin", "", "ls /run/bin /run/other /run/podman"],
  [
    "install --uninstall --force /run/bin",
    "patchbay install --bin /run/other /run/bin;",
    "ls -A /run/bin /run/other",
  ],
  ["del net c1", "", LEASES],
  ["gc net --all", "", LEASES],
  ["gc net --all --json", "", LEASES],
  ["gc --gone", GONE, LEASES],
  [
    "repair",
    "ip -n c1 link set eth0 down; ip -n c2 link set eth0 down;",
    "ip -n c1 -o link show up | wc -l; ip -n c2 -o link show up | wc -l",
  ],
  ["ipam release net 10.9.0.2 10.9.0.3 --force", "", LEASES],
  ["ipam release net --container c2 --force", "", LEASES],
  ["ipam export net", "", `${LEASES} -A`],
  [`pool add lan --config ${CLUSTER} --subnet 10.1.0.0/24 --block-size 16`, etcd(), records],
  [
    `node drain n1 --config ${CLUSTER}`,
    etcd(`etcdctl put /cluster/node/n1 '{"generation":1,"machine":"m","boot":"b","state":"joined"}' >/dev/null;`),
    records,
  ],
  ["network remove net", detached, "ls /sys/class/net /var/lib/cni/networks"],
];

/** Each with the descriptor that stdout is. */
const readers: [name: string, stdout: string][] = [
  ["closed", ">&-"],
  ["a pipe without a reader", "| head -c 0"],
  ["a full disk", ">/dev/full"],
];

test.each(commands)("%s", async (words, before, state) => {
  const wanted = await inMachine(async () => {
    await run(before);
    await must(words);
    return await machine.sh(state);
  });
  for (const [name, stdout] of readers) {
    const reached = await inMachine(async () => {
      await run(before);
      // The reader has gone before the command begins.
      const pipe = stdout.startsWith("|") ? `mkfifo /run/p; exec 3<>/run/p 4>/run/p 3>&-; patchbay ${words} >&4` : "";
      const { stderr } = await run(pipe || `patchbay ${words} ${stdout}`);
      return { state: await machine.sh(state), stderr };
    });
    expect({ name, ...reached }).toEqual({ name, state: wanted, stderr: expect.any(String) });
    if (words.startsWith("install") && name === "a full disk") {
      expect(reached.stderr).toContain("patchbay install: everything is done, but cannot be listed: write stdout: ");
    }
  }
});

test("nothing is said of a reader that has enough", async () => {
  await inMachine(async () => {
    const commands = {
      "plan net": 141,
      inspect: 141,
      networks: 141,
      "status net": 141,
      "ipam list net": 0,
      repair: 0,
    };
    for (const [words, status] of Object.entries(commands)) {
      const { stdout, stderr } = await run(
        `mkfifo /run/p; exec 3<>/run/p 4>/run/p 3>&-; patchbay ${words} >&4; echo $?; rm /run/p`,
      );
      expect({ words, stdout, stderr }).toEqual({ words, stdout: `${status}\n`, stderr: "" });
    }
  });
});
