/** netavark's driver bridge: links, addresses, routes, rules and published ports, with real packets, and their removal. */
import { expect, test } from "bun:test";
import { leftSince, type Moment, momentOf, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { ND } from "../../support/netavark/names.ts";
import { netavarkProgram } from "../../support/netavark/netavark.ts";
import { ping, type Place, serve } from "../../support/traffic.ts";
import { RandomKills } from "../../support/random-kills.ts";

/** Locks stay, and the file with the firewall driver. */
const KEPT = /^[-+] file \/run\/nd\/(firewall\/firewall-(driver|reload\.lock)|aardvark\.lock)/;
const kept = new RegExp(KEPT.source.replace("/run/nd", ND));

async function succeed(machine: Machine, verb: "setup" | "teardown", container: Container, input: object) {
  const answer = await attach(machine, verb, container, input);
  expect(answer).toMatchObject({ code: 0, stderr: "" });
  return answer.json;
}

async function succeedOnce(machine: Machine, container: Container, input: object): Promise<void> {
  await succeed(machine, "setup", container, input);
  await succeed(machine, "teardown", container, input);
}

async function nothingIsLeftOf(machine: Machine, container: Container, moment: Moment): Promise<void> {
  await machine.removeContainer(container);
  expect(await leftSince(moment, machine, kept)).toEqual([]);
}

/** The table with its base chains stays, as netavark leaves it. */
async function momentAfterOne(machine: Machine) {
  const first = await machine.container("first"), input = containerIn([{ network: bridgeNetwork(9) }], 9);
  await succeedOnce(machine, first, input);
  await machine.removeContainer(first);
  return await quietMoment(machine);
}

test("what a container gets, what podman is told, and nothing stays", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine), container = await machine.container();
  // Engines may leave that to netavark, which leaves it.
  await machine.sh("ip link set lo up", { in: container });
  const before = await momentOf(machine);
  const input = containerIn([{ network: bridgeNetwork() }], 1, [published(8080, 80)]);
  const told = await succeed(machine, "setup", container, input);
  const inside = JSON.parse(await machine.sh("ip -j -d addr show eth0", { in: container }))[0];
  expect(told).toEqual({
    net8: {
      dns_search_domains: [],
      dns_server_ips: [],
      interfaces: {
        eth0: {
          mac_address: inside.address,
          subnets: [{ gateway: "10.88.0.1", ipnet: "10.88.0.11/24" }, {
            gateway: "fd00:8::1",
            ipnet: "fd00:8::11/64",
          }],
        },
      },
    },
  });
  expect(await machine.sh("ip route", { in: container })).toContain(
    "default via 10.88.0.1 dev eth0 proto static metric 100",
  );
  expect(await machine.sh("ip -6 route", { in: container })).toContain(
    "default via fd00:8::1 dev eth0 proto static metric 100",
  );
  for (const [key, value] of [["podman8/rp_filter", 2], ["podman8/route_localnet", 1], ["all/forwarding", 1]]) {
    expect(await machine.sh(`cat /proc/sys/net/ipv4/conf/${key}`)).toBe(`${value}\n`);
  }
  for (const address of ["10.88.0.11", "fd00:8::11"]) expect(await ping(machine, undefined, address)).toBe(true);

  const bridge = JSON.parse(await machine.sh("ip -j link show podman8"))[0].address;
  const second = await machine.container("second"), another = containerIn([{ network: bridgeNetwork() }], 2);
  await succeed(machine, "setup", second, another);
  expect(JSON.parse(await machine.sh("ip -j link show podman8"))[0].address).toBe(bridge);
  expect(await ping(machine, second, "fd00:8::11")).toBe(true);
  await succeed(machine, "teardown", second, another);
  await machine.removeContainer(second);
  expect(await ping(machine, undefined, "10.88.0.11")).toBe(true);

  await succeed(machine, "teardown", container, input);
  expect(await leftSince(before, machine, kept)).toEqual([]);
  await nothingIsLeftOf(machine, container, moment);
});

test("published ports: of all addresses, of one, ranges, three protocols, both families", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), other = await machine.container("other");
  await machine.sh("ip addr add 192.0.2.1/32 dev lo; ip addr add 192.0.2.2/32 dev lo");
  await using server = await serve(machine, container, "tcp", 80);
  await using flows = await serve(machine, container, "udp", 80);
  await using high = await serve(machine, container, "tcp", 9002);
  const ports = [
    published(8080, 80),
    published(8081, 80, { host_ip: "192.0.2.1" }),
    published(8080, 80, { protocol: "udp" }),
    published(7000, 9000, { range: 5 }),
    published(6000, 9000, { range: 5, host_ip: "192.0.2.1" }),
  ];
  const input = containerIn([{ network: bridgeNetwork() }], 1, ports);
  await succeed(machine, "setup", container, input);
  const neighbour = containerIn([{ network: bridgeNetwork() }], 2);
  await succeed(machine, "setup", other, neighbour);

  expect(await server.ask(undefined, "127.0.0.1", 8080)).toBe("10.88.0.1");
  expect(await server.ask(undefined, "10.88.0.1", 8080)).toBe("10.88.0.1");
  expect(await server.ask(undefined, "fd00:8::1", 8080)).toBe("fd00:8::1");
  expect(await flows.ask(undefined, "192.0.2.2", 8080)).toBeDefined();
  expect(await server.ask(undefined, "192.0.2.1", 8081)).toBeDefined();
  expect(await server.ask(undefined, "192.0.2.2", 8081)).toBeUndefined();
  expect(await high.ask(undefined, "192.0.2.2", 7002)).toBeDefined();
  expect(await high.ask(undefined, "192.0.2.1", 6002)).toBeDefined();
  // Within the network, packets to the host's address return through the host.
  for (const [address, port] of [["10.88.0.1", 8080], ["192.0.2.1", 8081]] as const) {
    expect(await server.ask(other, address, port)).toBe("10.88.0.1");
  }
  await succeed(machine, "teardown", container, input);
  expect(await machine.sh("nft list table inet netavark | grep -cE 'dport (8081|60)|elements' || true")).toBe("0\n");
  await succeed(machine, "teardown", other, neighbour);
  expect(await machine.sh("nft -j list table inet netavark | grep -c nv_ || true")).toBe("0\n");
});

test("a container reaches its own published port, also where rules see packets within bridges", async () => {
  await using machine = await openMachine();
  const container = await machine.container(), places: Place[] = [["10.88.0.1", 8080], ["fd00:8::1", 8080]];
  await using server = await serve(machine, container, "tcp", 80);
  const input = containerIn([{ network: bridgeNetwork() }], 1, [published(8080, 80)]);
  for (const value of [1, 0]) {
    // Without br_netfilter there is no such sysctl, and rules do not see these packets.
    await machine.sh(`
      for what in iptables ip6tables; do
        file=/proc/sys/net/bridge/bridge-nf-call-$what; [ ! -e $file ] || echo ${value} >$file
      done`);
    await succeed(machine, "setup", container, input);
    expect(await server.askAll(container, places)).toEqual([expect.any(String), expect.any(String)]);
    await succeed(machine, "teardown", container, input);
  }
});

test("rules in netavark's own form are found and removed, with and without a ledger", async () => {
  await using machine = await openMachine();
  const container = await machine.container(),
    network = bridgeNetwork(8, { subnets: [{ subnet: "10.88.0.0/24", gateway: "10.88.0.1" }] });
  const input = containerIn([{ network }], 1, [published(8080, 80), published(8081, 80, { host_ip: "192.0.2.1" })]);
  await succeedOnce(machine, container, input);
  const empty = await machine.sh("nft list table inet netavark");
  await succeed(machine, "setup", container, input);
  const name = `nv_${network.id.slice(0, 8)}_10_88_0_0_nm24_dnat`;
  await machine.sh(`nft -f - <<END
    add rule inet netavark NETAVARK-HOSTPORT-DNAT tcp dport 8080 jump ${name}
    add rule inet netavark ${name} ip saddr 10.88.0.0/24 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK
    add rule inet netavark ${name} ip saddr 127.0.0.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK
    add rule inet netavark ${name} tcp dport 8080 ct mark set meta mark or 0x1000 dnat ip to 10.88.0.11:80
    add rule inet netavark FORWARD ip saddr 10.88.0.0/24 accept
    add rule inet netavark NETAVARK-HOSTPORT-DNAT tcp dport 9999 jump ${name} comment "of a container long gone"
END`);
  await machine.sh("rm -r /run/patchbay");
  await succeed(machine, "teardown", container, input);
  expect(await machine.sh("nft list table inet netavark")).toBe(empty);
  expect(await machine.sh("ip -br link show type bridge; ip -br link show type veth")).toBe("");
});

test("all networks or none, and the failing one is undone too", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine), container = await machine.container();
  // Engines may leave that to netavark, which leaves it.
  await machine.sh("ip link set lo up", { in: container });
  const before = await momentOf(machine);
  await machine.sh("ip link add podman7 type veth peer name elsewhere");
  const wishes = [8, 6, 7].map((number) => ({ network: bridgeNetwork(number) }));
  const input = containerIn(wishes, 1, [published(8080, 80)]);
  const failed = await attach(machine, "setup", container, input);
  expect(failed).toMatchObject({
    code: 1,
    json: { error: "bridge interface podman7 already exists but is a Veth interface" },
  });
  await machine.sh("ip link del podman7");
  expect(await leftSince(before, machine, kept)).toEqual([]);
  await succeedOnce(machine, container, input);
  await nothingIsLeftOf(machine, container, moment);
});

test("the namespace is gone, the link is gone, and twice", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine), container = await machine.container();
  const input = containerIn([{ network: bridgeNetwork() }], 1, [published(8080, 80)]);
  await succeed(machine, "setup", container, input);
  await machine.sh("ip link del eth0", { in: container });
  const lost = await attach(machine, "teardown", container, input);
  expect(lost.json).toEqual({
    error: "failed to delete container veth eth0: Netlink error: No such device (os error 19)",
  });
  await succeed(machine, "teardown", container, input);

  await succeed(machine, "setup", container, input);
  await machine.removeContainer(container);
  const gone = await attach(machine, "teardown", container, input, { RUST_LOG: "netavark=warn" });
  expect(gone.code).toBe(0);
  expect(gone.stderr).toContain("container netns not found");
  expect(await leftSince(moment, machine, kept)).toEqual([]);
});

test("setup or teardown killed at any moment, the next teardown leaves nothing", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine);
  const input = containerIn([{ network: bridgeNetwork(8) }, { network: bridgeNetwork(7) }], 1, [published(8080, 80)]);
  await machine.sh(`cat >/run/input.json`, { stdin: JSON.stringify(input) });
  const kills = { setup: new RandomKills(), teardown: new RandomKills() };
  for (let round = 0; round < 40; round++) {
    const container = await machine.container(`killed${round}`), verb = round % 2 === 0 ? "setup" : "teardown";
    if (verb === "teardown") await succeed(machine, "setup", container, input);
    const command = [netavarkProgram(), "-c", ND, "-f", "/run/input.json", verb, container.netnsPath];
    await kills[verb].kill(machine.start(command));
    expect((await attach(machine, "teardown", container, input)).stderr).toBe("");
    await succeed(machine, "teardown", container, input);
    await machine.removeContainer(container);
  }
  expect(Math.min(kills.setup.killed, kills.teardown.killed)).toBeGreaterThan(0);
  await machine.sh("rm /run/input.json");
  expect(await leftSince(moment, machine, kept)).toEqual([]);
});

test("many at once", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine), numbers = Array.from({ length: 12 }, (_, index) => index + 1);
  const all = await Promise.all(numbers.map(async (number) => ({
    container: await machine.container(`c${number}`),
    input: containerIn([{ network: bridgeNetwork() }], number, [published(8000 + number, 80)]),
  })));
  for (let round = 0; round < 3; round++) {
    await Promise.all(all.map(({ container, input }) => succeed(machine, "setup", container, input)));
    expect(
      await machine.sh(
        "nft -j list map inet netavark nv_8abcdef0_10_88_0_0_nm24_ports | grep -o '\"10.88.0' | wc -l",
      ),
    )
      .toBe("12\n");
    await Promise.all(all.map(({ container, input }) => succeed(machine, "teardown", container, input)));
  }
  for (const { container } of all) await machine.removeContainer(container);
  expect(await leftSince(moment, machine, kept)).toEqual([]);
});

test("whoever cannot read the answer has nothing attached", async () => {
  await using machine = await openMachine();
  const moment = await momentAfterOne(machine), container = await machine.container();
  const input = containerIn([{ network: bridgeNetwork() }], 1, [published(8080, 80)]);
  const { code, stderr } = await machine.run(
    ["sh", "-c", `${netavarkProgram()} -c ${ND} setup ${container.netnsPath} >/dev/full`],
    { stdin: JSON.stringify(input) },
  );
  expect(code).toBe(1);
  expect(stderr).toContain("the answer cannot be written, so the container is detached again");
  await nothingIsLeftOf(machine, container, moment);
});
