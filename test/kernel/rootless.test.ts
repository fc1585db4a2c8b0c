/**
 * The chain of a rootless engine in its user namespace: bridge, host-local, portmap, firewall, bandwidth and tuning, by
 * an engine and by our runtime. Nothing in it has a right outside.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { type Network, network } from "../support/network.ts";
import { statusOf } from "../support/resident-status.ts";
import { openResident, untilServed } from "../support/served.ts";

// The machines that need a resident start it themselves.
delete process.env.PATCHBAY_TEST_RESIDENT;

const portTo = (hostPort: number) => [{ hostPort, containerPort: 80, protocol: "tcp" }];
const limits = { ingressRate: 8_000_000, ingressBurst: 800_000, egressRate: 8_000_000, egressBurst: 800_000 };

function chainOf(backend: "iptables" | "nftables"): (Record<string, unknown> & { type: string })[] {
  const ranges = [[{ subnet: "10.88.0.0/16" }], [{ subnet: "fd00:88::/64" }]];
  return [
    { type: "bridge", isGateway: true, ipMasq: true, ipMasqBackend: backend, ipam: { type: "host-local", ranges } },
    { type: "portmap", backend },
    { type: "firewall", backend, ingressPolicy: "same-bridge" },
    { type: "bandwidth", ...limits },
    { type: "tuning", sysctl: { "net.ipv4.conf.eth0.arp_filter": "1" }, mtu: 1400 },
  ];
}

/** As an engine calls them: each with the result of the one before, and at last with that of the whole chain. */
class Chain {
  private readonly results = new Map<Container, unknown>();
  private readonly members: Network[];

  constructor(machine: Machine, confs: ReturnType<typeof chainOf>) {
    const own = (container: Container) => ({
      prevResult: this.results.get(container),
      runtimeConfig: { portMappings: portTo(8080 + machine.containers.indexOf(container)) },
    });
    this.members = confs.map((conf) => network(machine, conf, patchbayPlugins(), { own }));
  }

  async add(container: Container) {
    this.results.delete(container);
    for (const member of this.members) this.results.set(container, await member.add(container));
  }

  async every(command: "CHECK" | "DEL", container: Container) {
    const change = { conf: { prevResult: this.results.get(container) } };
    const inTurn = command === "DEL" ? this.members.toReversed() : this.members;
    for (const member of inTurn) {
      expect(await member.call(command, container, change)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    }
  }

  async status() {
    for (const member of this.members) {
      expect(await member.call("STATUS", undefined)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    }
  }

  async gc(valid: readonly Container[]) {
    for (const member of this.members) await member.gc(valid);
  }
}

/** What the container has, and that it can be reached. */
async function expectAttached(machine: Machine, container: Container, neighbour: Container) {
  const inside = (script: string) => machine.sh(script, { in: container });
  expect(await inside("ip address show eth0")).toMatch(/mtu 1400[^]*inet 10\.88\.0\.\d+\/16[^]*inet6 fd00:88::/);
  expect(await inside("cat /proc/sys/net/ipv4/conf/eth0/arp_filter")).toBe("1\n");
  const [, address] = /inet ([0-9.]+)/.exec(await machine.sh("ip address show eth0", { in: neighbour }))!;
  await inside(`ping -c 1 -W 20 ${address}`);
  expect(await machine.sh("tc qdisc show")).toMatch(/tbf[^]*ingress/);
  expect(await machine.sh("nft list ruleset")).toMatch(/8080/);
}

const ways = [["nftables", false], ["nftables", true], ["iptables", false], ["iptables", true]] as const;

test.each(ways)("an engine's chain by %s, through a resident: %p", async (backend, isServed) => {
  await using machine = await openMachine({ isRootless: true });
  await using _ = isServed ? await openResident(machine) : undefined;
  if (isServed) await untilServed(machine);
  const chain = new Chain(machine, chainOf(backend));
  const [first, second] = [await machine.container(), await machine.container()];
  await chain.status();
  for (const one of [first, second]) await chain.add(one);
  for (const one of [first, second]) await chain.every("DEL", one);
  const moment = await quietMoment(machine), before = isServed ? (await statusOf(machine)).served : 0;

  for (const one of [second, first]) await chain.add(one);
  await chain.status();
  for (const one of [first, second]) await chain.every("CHECK", one);
  await expectAttached(machine, first, second);
  await chain.gc([first]);
  await chain.every("CHECK", first);
  expect(await machine.sh("ip -o link show", { in: second })).not.toContain("eth0");
  await chain.every("DEL", first);
  expect(await leftSince(moment, machine)).toEqual([]);
  if (isServed) expect((await statusOf(machine)).served - before).toBeGreaterThanOrEqual(35);
});

test.each(["nftables", "iptables"] as const)("our runtime's network by %s: each command", async (backend) => {
  await using machine = await openMachine({ isRootless: true });
  const [first, second] = [await machine.container("c1"), await machine.container("c2")];
  const plugins = chainOf(backend).map((conf) => {
    return conf.type === "portmap" ? { ...conf, capabilities: { portMappings: true } } : conf;
  });
  await machine.sh("mkdir /run/conf; cat >/run/conf/n.conflist", {
    stdin: JSON.stringify({ cniVersion: "1.1.0", name: "n", plugins }),
  });
  const patchbay = async (words: string, capabilities = {}) => {
    const { code, stdout, stderr } = await machine.run([PATCHBAY, ...words.split(" ")], {
      env: { NETCONFPATH: "/run/conf", CNI_PATH: patchbayPlugins(), CAP_ARGS: JSON.stringify(capabilities) },
    });
    expect([words, code, stderr]).toEqual([words, 0, expect.not.stringContaining("not permitted")]);
    return stdout;
  };
  const round = async (look: () => Promise<void>) => {
    await patchbay("status n");
    await patchbay("plan n c1");
    await patchbay(`add n ${second.netnsPath}`);
    await patchbay(`add n ${first.netnsPath}`, { portMappings: portTo(8080) });
    await look();
    await patchbay("gc n --gone");
    for (const { netnsPath } of [first, second]) await patchbay(`del n ${netnsPath}`);
  };
  await round(async () => {});
  const moment = await quietMoment(machine);
  await round(async () => {
    await expectAttached(machine, first, second);
    await patchbay(`check n ${first.netnsPath}`);
    expect(await patchbay("ls")).not.toContain("broken");
    expect(await patchbay("inspect n")).not.toMatch(/missing|differs/);
    await machine.sh("ip link set dev eth0 down", { in: first });
    await patchbay("repair n");
    await expectAttached(machine, first, second);
  });
  expect(await leftSince(moment, machine)).toEqual([]);
});
