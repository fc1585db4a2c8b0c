/**
 * Two containers with one port of the host, in the tables of iptables, in our own, in podman's: who gets the connections
 * is told, and real connections agree. Within our table the second is refused, and podman asks for no port twice.
 */
import { expect, test } from "bun:test";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../support/netavark/attached.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { serve } from "../support/traffic.ts";

const ADDRESS = "10.9.9.1", PORT = 8080;
type Way = "iptables" | "nftables" | "netavark";

interface Rival {
  container: Container;
  id: string;
  /** As warnings and `inspect` name it. */
  name: string;
  /** What is told before it is attached. podman is told nothing. */
  plan(): Promise<string>;
  /** What is told when it is attached: nothing. */
  add(): Promise<string>;
  del(): Promise<void>;
  inspect(): Promise<string>;
}

async function rival(machine: Machine, way: Way, number: 1 | 2 | 3, hostIP?: string): Promise<Rival> {
  const container = await machine.container(`c${number}`);
  const common = (network: string, id: string) => ({
    container,
    id,
    inspect: async () => (await machine.run([PATCHBAY, "inspect", network, id])).stdout,
  });
  if (way === "netavark") {
    const ports = [published(PORT, 80, { host_ip: hostIP ?? "" })];
    const input = containerIn([{ network: bridgeNetwork() }], number, ports), id = input.container_id;
    const succeed = async (verb: "setup" | "teardown") =>
      expect(await attach(machine, verb, container, input)).toMatchObject({ code: 0, stderr: "" });
    return {
      ...common("net8", id),
      name: `container ${id}, interface eth0 of network net8`,
      plan: () => Promise.resolve(""),
      add: async () => {
        await succeed("setup");
        return "";
      },
      del: async () => void await succeed("teardown"),
    };
  }
  const network = `n${number}`, id = `id${number}`, subnet = `10.${number}.0.0/24`;
  const ipam = { type: "host-local", subnet, routes: [{ dst: "0.0.0.0/0" }] };
  const bridge = { type: "bridge", bridge: `br${number}`, isGateway: true, ipam };
  const portmap = { type: "portmap", backend: way, capabilities: { portMappings: true } };
  const list = JSON.stringify({ cniVersion: "1.1.0", name: network, plugins: [bridge, portmap] });
  await machine.sh(`mkdir -p /run/net.d; cat >/run/net.d/${network}.conflist <<'end'\n${list}\nend`);
  const portMappings = [{ hostPort: PORT, containerPort: 80, protocol: "tcp", hostIP }];
  const call = async (command: string) => {
    const options = ["--config-dir", "/run/net.d", "--container-id", id];
    const env = { CAP_ARGS: JSON.stringify({ portMappings }) };
    const outcome = await machine.run([PATCHBAY, command, ...options, network, container.netnsPath], { env });
    expect([way, command, outcome.code, outcome.stderr]).toEqual([way, command, 0, expect.any(String)]);
    return outcome.stderr;
  };
  return {
    ...common(network, id),
    name: `container ${id}${way === "nftables" ? ", interface eth0" : ""} of network ${network}`,
    plan: () => call("plan"),
    add: () => call("add"),
    del: async () => void await call("del"),
  };
}

/** Whether connections to the port come to the container. */
async function isReached(machine: Machine, { container }: Rival): Promise<boolean> {
  await using server = await serve(machine, container, "tcp", 80);
  return await server.ask(undefined, ADDRESS, PORT) !== undefined;
}

/** Who gets the connections: the one that was first, the second, or either. */
const pairs: [first: Way, second: Way, gets: "first" | "second" | "either"][] = [
  ["iptables", "iptables", "first"],
  ["iptables", "nftables", "first"],
  ["nftables", "iptables", "second"],
  ["netavark", "nftables", "first"],
  ["nftables", "netavark", "second"],
  ["iptables", "netavark", "either"],
  ["netavark", "iptables", "either"],
];

for (const [first, second, gets] of pairs) {
  for (const hostIP of [undefined, ADDRESS]) {
    const what = `${first}, then ${second}, ${hostIP === undefined ? "all addresses" : "one address"}`;
    test(`${what}: ${gets} gets the connections`, async () => {
      await using machine = await openMachine();
      await machine.sh(`ip link set lo up; ip address add ${ADDRESS}/32 dev lo`);
      const one = await rival(machine, first, 1, hostIP), two = await rival(machine, second, 2, hostIP);
      const by = (way: Way) => first === second ? ", whose rule comes first" : ` by ${way}, which comes first`;
      const port = `host port ${PORT}/tcp`;
      const loses = (winner: Rival, way: Way) =>
        `${port} leads to ${winner.name}${by(way)}: that container gets the connections, this one none`;
      const wins = `${port} led to ${one.name} by ${first}; ${second} comes first: ` +
        "this container gets the connections, that one none";
      const either = `${port} leads to ${one.name} by ${first}, too: `;
      expect(await one.plan()).toBe("");
      expect(await one.add()).toBe("");
      const told = { first: loses(one, first), second: wins, either }[gets];
      const planned = await two.plan();
      if (second !== "netavark") expect(planned).toContain(told);
      expect(await two.add()).toBe("");
      const [ofOne, ofTwo] = [await one.inspect(), await two.inspect()];
      expect(ofOne.includes("this one none")).toBe(gets === "second");
      expect(ofTwo.includes("this one none")).toBe(gets === "first");
      if (gets === "second") expect(ofOne).toContain(loses(two, second));
      if (gets === "first") expect(ofTwo).toContain(loses(one, first));
      if (gets === "either") expect(ofTwo).toContain(either);
      const reached = [await isReached(machine, one), await isReached(machine, two)];
      if (gets === "either") expect(reached.filter(Boolean)).toHaveLength(1);
      else expect(reached).toEqual([gets === "first", gets === "second"]);
      await two.del();
      expect(await one.inspect()).not.toContain(port);
      expect(await isReached(machine, one)).toBe(true);
      await one.del();
    });
  }
}

test("of three, the first one alone is named, and who has lost has won nothing", async () => {
  await using machine = await openMachine();
  await machine.sh(`ip link set lo up; ip address add ${ADDRESS}/32 dev lo`);
  const one = await rival(machine, "iptables", 1), two = await rival(machine, "nftables", 2);
  const three = await rival(machine, "iptables", 3);
  await one.add();
  await two.add();
  const lost = `host port ${PORT}/tcp leads to ${one.name}, whose rule comes first: ` +
    "that container gets the connections, this one none";
  const planned = (await three.plan()).split("\n").filter((line) => line.includes("host port"));
  expect(planned).toEqual([expect.stringContaining(lost)]);
  await three.add();
  expect([await isReached(machine, one), await isReached(machine, three)]).toEqual([true, false]);
});

for (const [first, second] of [["nftables", "iptables"], ["netavark", "nftables"]] as const) {
  test(`ports of two addresses of the host are no rivals: ${first}, then ${second}`, async () => {
    await using machine = await openMachine();
    const one = await rival(machine, first, 1, "10.9.9.2");
    expect(await one.add()).toBe("");
    const two = await rival(machine, second, 2, ADDRESS);
    expect([await two.plan(), await two.add()]).toEqual(["", ""]);
    expect(await one.inspect()).not.toContain("connections");
  });
}

test("netavark's own rules, which name no container", async () => {
  await using machine = await openMachine();
  const one = await rival(machine, "netavark", 1, "10.9.9.2"), two = await rival(machine, "nftables", 2);
  await one.add();
  expect(await two.plan()).toBe("");
  const [chain] = /nv_\w+_dnat(?= \{)/.exec(await machine.sh("nft list table inet netavark"))!;
  await machine.sh(`nft add rule inet netavark ${chain} tcp dport ${PORT} dnat ip to 10.88.0.50:80`);
  expect(await two.plan()).toContain(
    `host port ${PORT}/tcp leads to another container by netavark, which comes first`,
  );
});
