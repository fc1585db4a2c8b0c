/**
 * teardown of networks with our driver after mishaps: no namespace, no file or another one of the network, lost records,
 * setup killed at any moment, the container started again elsewhere, nobody to read the answer.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment, withoutContainer } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { CONFIGS, DriverNetwork, port, type Wanted, writeConflist } from "../../support/podman-driver.ts";
import { ping } from "../../support/traffic.ts";
import { RandomKills } from "../../support/random-kills.ts";
import { ownShare } from "../../support/share.ts";

const bridge = (name: string, subnet: string, more = {}) => ({
  type: "bridge",
  bridge: name,
  isGateway: true,
  ipMasq: true,
  ipam: { type: "host-local", ranges: [[{ subnet }]], ...more },
});
const chained = [{ type: "portmap", capabilities: { portMappings: true } }, { type: "firewall" }];
const ports = [port(8080, 80)];
/** By the test itself. */
const REMOVED = /^- file \/run\/net\.d\//;

interface Kind {
  name: string;
  /** The conflist's name. */
  list: string;
  wanted: Wanted;
}

const kinds: Kind[] = [
  { name: "an address of the network's choice", list: "web", wanted: { ports } },
  { name: "a chosen address, and leases in /run", list: "own", wanted: { ports, ips: ["10.8.0.5"] } },
];

async function open(machine: Machine, { list }: Kind): Promise<DriverNetwork> {
  await writeConflist(machine, { name: "web", plugins: [bridge("web0", "10.7.0.0/24"), ...chained] });
  const ofRun = bridge("own0", "10.8.0.0/24", { dataDir: "/run/cni/networks" });
  await writeConflist(machine, { name: "own", plugins: [ofRun, ...chained] });
  return await DriverNetwork.create(machine, { options: { conflist: list } });
}

/** What happens to an attachment before teardown; answers what teardown is told. */
type Mishap = (machine: Machine, net: DriverNetwork) => Promise<Wanted | void> | Wanted;

const mishaps: Record<string, Mishap> = {
  "the namespace gone": async (machine) => {
    await machine.removeContainer(machine.containers[0]!);
    return { netnsPath: "/proc/does-not-exist/ns/net" };
  },
  "the configuration directory gone": async (machine) => void await machine.sh(`rm -r ${CONFIGS}`),
  "another conflist of the name": async (machine) => {
    for (const name of ["web", "own"]) {
      await writeConflist(machine, { name, plugins: [{ type: "bridge", bridge: "other0" }] });
    }
  },
  "podman's options changed": () => ({ network: { options: { conflist: "none" }, subnets: [] } }),
  "podman's options not readable": () => ({ network: { options: { plugins: "nothing", x: "y" } } }),
  "the result cache lost": async (machine) => void await machine.sh("rm -r /var/lib/cni/results"),
  "the ledgers lost": async (machine) => void await machine.sh("rm -r /run/patchbay/*"),
  "cache torn, conflist gone": async (machine) => {
    await machine.sh(`for file in /var/lib/cni/results/*; do echo '{"kind":"cni' >$file; done; rm -r ${CONFIGS}`);
  },
  "static_ips not sent": () => ({ ips: [] }),
};

for (const kind of kinds) {
  test.each(ownShare(Object.keys(mishaps)))(`teardown with %s: ${kind.name}`, async (name) => {
    await using machine = await openMachine();
    const net = await open(machine, kind), container = await machine.container("c1");
    await net.once(container, kind.wanted);
    let moment = await quietMoment(machine);
    await net.setup(container, kind.wanted);
    const change = await mishaps[name]!(machine, net);
    if (!machine.containers.includes(container)) moment = withoutContainer(moment, container);
    for (const again of [false, true]) {
      const { code, stdout } = await net.call("teardown", container, { ...kind.wanted, ...change });
      expect({ again, code, stdout }).toEqual({ again, code: 0, stdout: "" });
    }
    expect(await leftSince(moment, machine, REMOVED)).toEqual([]);
  });
}

test.each(kinds)("setup or teardown killed at any moment, then teardown: $name", async (kind) => {
  await using machine = await openMachine();
  const net = await open(machine, kind), container = await machine.container("c1");
  await net.once(container, kind.wanted);
  const moment = await quietMoment(machine), document = JSON.stringify(net.document(container, kind.wanted));
  const kills = { setup: new RandomKills(), teardown: new RandomKills() };
  for (let round = 0; round < 40; round++) {
    const verb = round % 2 === 0 ? "setup" : "teardown";
    if (verb === "teardown") await net.setup(container, kind.wanted);
    const child = machine.start(["env", `NETCONFPATH=${CONFIGS}`, PATCHBAY, verb, container.netnsPath]);
    child.stdin.write(document);
    await child.stdin.end();
    await kills[verb].kill(child);
    // A child of what was killed may hold its lock for a moment, and a warning says so.
    const { code, stdout } = await net.call("teardown", container, kind.wanted);
    expect({ round, code, stdout }).toEqual({ round, code: 0, stdout: "" });
    expect({ round, left: await leftSince(moment, machine) }).toEqual({ round, left: [] });
  }
  expect(Math.min(kills.setup.killed, kills.teardown.killed)).toBeGreaterThan(0);
});

const restarts = kinds.flatMap((kind) => ["c2", "c1"].map((path) => ({ kind, path })));

test("a container that is started again elsewhere without teardown: what it had is taken back first", async () => {
  for (const { kind, path } of restarts) {
    await using machine = await openMachine();
    const net = await open(machine, kind), before = await machine.container("c1");
    const own = { ...kind.wanted, containerId: "same" };
    await net.once(before, own);
    await net.setup(before, own);
    await machine.removeContainer(before);
    // Another namespace, also where the path is the same.
    const after = await machine.container(path), { interfaces } = await net.setup(after, own);
    const headers = await machine.sh(`grep -hc '"patchbay":1' /run/patchbay/*/same@eth0@* | sort -u`);
    expect(headers).toBe("1\n");
    const [address] = interfaces["eth0"]!.subnets![0]!.ipnet.split("/");
    expect(await ping(machine, undefined, address!)).toBe(true);
    await net.teardown(after, own);
    const moment = await quietMoment(machine);
    // Once more, so that the moment has nothing of the first.
    await net.once(after, own);
    expect(await leftSince(moment, machine)).toEqual([]);
    expect(await machine.sh("find /run/patchbay /var/lib/cni/results -type f -not -name '.*'")).toBe("");
  }
});

test.each(kinds)("after a boot, without teardown, setup works and teardown leaves nothing: $name", async (kind) => {
  await using machine = await openMachine();
  const net = await open(machine, kind),
    before = await machine.container("c1"),
    after = await machine.container("c2");
  const own = { ...kind.wanted, containerId: "same" };
  await net.setup(before, own);
  // What a boot does to the kernel and to /run.
  await machine.removeContainer(before);
  await machine.sh(
    `ip link del ${kind.list}0; nft flush ruleset; rm -r /run/patchbay/*`,
  );
  const { interfaces: { eth0 } } = await net.setup(after, own);
  expect(await ping(machine, undefined, eth0!.subnets![0]!.ipnet.split("/")[0]!)).toBe(true);
  await net.teardown(after, own);
  const files = "/run/patchbay /var/lib/cni/results /var/lib/cni/networks/*/10.*";
  expect(await machine.sh(`find ${files} -type f -not -name '.*' 2>/dev/null || true`)).toBe("");
  expect(await machine.sh("nft list ruleset; ip route")).not.toMatch(/8080|10\.[78]\.0\.[2-9]\b/);
});

test("records are in /run where /var/lib/cni cannot be written, as for podman without root", async () => {
  await using machine = await openMachine();
  await machine.sh("mount -o remount,ro /var/lib");
  const kind = kinds[1]!, net = await open(machine, kind), container = await machine.container("c1");
  await net.once(container, kind.wanted);
  const moment = await quietMoment(machine);
  await net.setup(container, kind.wanted);
  expect(await machine.sh("ls /run/cni/results")).toBe("own-id-c1-eth0\n");
  await net.teardown(container, kind.wanted);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("a failed setup leaves nothing, and neither does one whose answer nobody reads", async () => {
  await using machine = await openMachine();
  const kind = kinds[1]!, net = await open(machine, kind), container = await machine.container("c1");
  await net.once(container, kind.wanted);
  const moment = await quietMoment(machine);
  const impossible = [...ports, port(8081, 80, { host_ip: "abcd" })];
  expect((await net.call("setup", container, { ...kind.wanted, ports: impossible })).code).toBe(1);
  expect(await leftSince(moment, machine)).toEqual([]);
  const stdin = JSON.stringify(net.document(container, kind.wanted));
  const script = `exec ${PATCHBAY} setup ${container.netnsPath} >/dev/full`;
  const { code: status, stderr } = await machine.run(["sh", "-c", script], { stdin, env: net.env });
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("the attachment is taken back") });
  expect(await leftSince(moment, machine)).toEqual([]);
  // The second of two must not take back the first.
  const first = await net.setup(container, kind.wanted);
  const { code, json } = await net.call("setup", container, kind.wanted);
  expect({ code, json }).toEqual({ code: 1, json: { error: expect.stringContaining("eth0") } });
  expect(await ping(machine, undefined, first.interfaces["eth0"]!.subnets![0]!.ipnet.split("/")[0]!)).toBe(true);
  await net.teardown(container, kind.wanted);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("teardown of what nobody knows, of a network that cannot be read, succeeds and says so", async () => {
  await using machine = await openMachine();
  const kind = kinds[0]!, net = await open(machine, kind), container = await machine.container("c1");
  await machine.sh(`rm -r ${CONFIGS}`);
  const { code, stdout, stderr } = await net.call("teardown", container, kind.wanted);
  expect([code, stdout, stderr.trimEnd().split("\n")]).toEqual([0, "", [
    expect.stringMatching(/network web cannot be read, and nothing is recorded of this container: .*net\.d/),
  ]]);
});
