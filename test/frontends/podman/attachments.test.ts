/** Containers in networks with our driver: addresses, packets, published ports, and what teardown leaves. */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { DriverNetwork, port, writeConflist } from "../../support/podman-driver.ts";
import { POOLS, serve as servePool } from "../../support/served-pool.ts";
import { ping, serve } from "../../support/traffic.ts";

const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/;

async function macIn(machine: Machine, container: Container, name = "eth0"): Promise<string> {
  return JSON.parse(await machine.sh(`ip -j link show ${name}`, { in: container }))[0].address;
}

const conflist = {
  name: "web",
  plugins: [
    {
      type: "bridge",
      bridge: "web0",
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      capabilities: { mac: true },
      ipam: { type: "host-local", ranges: [[{ subnet: "10.7.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
      dns: { nameservers: ["10.7.0.53"], search: ["web.example"] },
    },
    { type: "portmap", capabilities: { portMappings: true } },
    { type: "firewall" },
  ],
};

const ptp = (subnet: string) => ({
  type: "ptp",
  ipMasq: true,
  capabilities: { ips: true },
  ipam: { type: "host-local", ranges: [[{ subnet }]], routes: [{ dst: "0.0.0.0/0" }] },
});

test("the network of a file, with its own addresses, ports and name servers", async () => {
  await using machine = await openMachine();
  await writeConflist(machine, conflist);
  const net = await DriverNetwork.create(machine, { options: { conflist: "web" } });
  expect(net.network).toMatchObject({
    name: "pod-net",
    driver: "patchbay",
    dns_enabled: false,
    ipam_options: { driver: "none" },
  });
  const container = await machine.container("c1"), other = await machine.container("c2");
  const wanted = { ports: [port(8080, 80), port(9000, 9100, { range: 3 }), port(8081, 80, { protocol: "udp" })] };
  await net.once(container, wanted);
  const moment = await quietMoment(machine);

  const status = await net.setup(container, wanted);
  expect(status).toEqual({
    dns_search_domains: ["web.example"],
    dns_server_ips: ["10.7.0.53"],
    interfaces: {
      eth0: {
        mac_address: await macIn(machine, container),
        subnets: [{ gateway: "10.7.0.1", ipnet: expect.stringMatching(/^10\.7\.0\.\d+\/24$/) }],
      },
    },
  });
  const address = status.interfaces["eth0"]!.subnets![0]!.ipnet.split("/")[0]!;
  expect(await ping(machine, undefined, address)).toBe(true);
  await net.setup(other, { ips: ["10.7.0.99"] });
  expect(await ping(machine, container, "10.7.0.99")).toBe(true);
  for (const [inside, outside] of [[80, 8080], [9100, 9000], [9102, 9002]] as const) {
    await using server = await serve(machine, container, "tcp", inside);
    expect([outside, await server.ask(undefined, "10.7.0.1", outside)]).not.toEqual([outside, undefined]);
    expect(await server.ask(other, "10.7.0.1", outside)).toBeDefined();
  }
  await using udp = await serve(machine, container, "udp", 80);
  expect(await udp.ask(other, "10.7.0.1", 8081)).toBeDefined();
  await net.teardown(container, wanted);
  await net.teardown(other);
  // A second time, too, and nothing was ever there.
  await net.teardown(other);
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("two networks of one container, one of which publishes the ports", async () => {
  await using machine = await openMachine();
  await writeConflist(machine, conflist);
  const first = await DriverNetwork.create(machine, { name: "first", options: { conflist: "web" } });
  await writeConflist(machine, { name: "line", plugins: [ptp("10.9.0.0/24")] });
  const second = await DriverNetwork.create(machine, {
    name: "second",
    options: { conflist: "line", ports: "ignore" },
  });
  // The same CNI network again, which podman has under another name.
  const third = await DriverNetwork.create(machine, { name: "third", options: { conflist: "web", ports: "ignore" } });
  const container = await machine.container("c1"), ports = [port(8080, 80)];
  const attach = async () => [
    await first.setup(container, { ports, ifName: "eth0" }),
    await second.setup(container, { ports, ifName: "eth1" }),
    await third.setup(container, { ports, ifName: "eth2" }),
  ];
  const detach = async () => {
    await second.teardown(container, { ports, ifName: "eth1" });
    await first.teardown(container, { ports, ifName: "eth0" });
    await third.teardown(container, { ports, ifName: "eth2" });
  };
  await attach();
  await detach();
  const moment = await quietMoment(machine);
  const answers = await attach();
  expect(answers.map(({ interfaces }) => Object.keys(interfaces))).toEqual([["eth0"], ["eth1"], ["eth2"]]);
  expect(new Set(answers.flatMap(({ interfaces }) => Object.values(interfaces)).map((one) => one.mac_address)).size)
    .toBe(3);
  await using server = await serve(machine, container, "tcp", 80);
  expect(await server.ask(undefined, "10.7.0.1", 8080)).toBeDefined();
  expect(await ping(machine, container, "10.9.0.1")).toBe(true);
  // `podman network disconnect` of one leaves the others.
  await second.teardown(container, { ports, ifName: "eth1" });
  expect(await server.ask(undefined, "10.7.0.1", 8080)).toBeDefined();
  await second.setup(container, { ports, ifName: "eth1" });
  await detach();
  expect(await leftSince(moment, machine)).toEqual([]);
});

const ports80 = { type: "portmap", capabilities: { portMappings: true } };
const macs = { type: "tuning", capabilities: { mac: true } };
const reloads = [["bridge", conflist.plugins], ["ptp", [ptp("10.7.0.0/24"), ports80, macs]]] as const;

test.each(reloads)("network reload and restart keep MAC and addresses: %s", async (_, plugins) => {
  await using machine = await openMachine();
  await writeConflist(machine, { name: "web", plugins });
  const net = await DriverNetwork.create(machine, { options: { conflist: "web" } });
  const container = await machine.container("c1"), ports = [port(8080, 80)];
  await net.once(container, { ports });
  const moment = await quietMoment(machine);
  const { interfaces: { eth0 } } = await net.setup(container, { ports });
  const mac = eth0!.mac_address, ips = eth0!.subnets!.map(({ ipnet }) => ipnet.split("/")[0]!);
  expect(mac).toMatch(MAC);
  for (let round = 0; round < 2; round++) {
    await net.teardown(container, { ports, ips, mac });
    expect(await net.setup(container, { ports, ips, mac })).toMatchObject({ interfaces: { eth0: eth0! } });
    expect(await macIn(machine, container)).toBe(mac);
    expect(await ping(machine, undefined, ips[0]!)).toBe(true);
    expect(await ping(machine, container, "10.7.0.1")).toBe(true);
    await using server = await serve(machine, container, "tcp", 80);
    expect(await server.ask(undefined, "10.7.0.1", 8080)).toBeDefined();
  }
  await net.teardown(container, { ports, ips, mac });
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("the user's MAC and address, in a network with addresses of its own", async () => {
  await using machine = await openMachine();
  await writeConflist(machine, conflist);
  const net = await DriverNetwork.create(machine, { options: { conflist: "web" } });
  const container = await machine.container("c1"), mac = "0a:58:0a:07:00:2a";
  const { interfaces } = await net.setup(container, {
    ips: ["10.7.0.42"],
    mac: mac.toUpperCase().replaceAll(":", "-"),
  });
  expect(interfaces).toEqual({
    eth0: { mac_address: mac, subnets: [{ gateway: "10.7.0.1", ipnet: "10.7.0.42/24" }] },
  });
  expect(await macIn(machine, container)).toBe(mac);
});

test("a network whose addresses are of a cluster's pool: any, or one that podman asks for", async () => {
  await using machine = await openMachine();
  await servePool(machine, { routes: [{ dst: "0.0.0.0/0" }] });
  const ipam = { type: "patchbay-cluster", pool: "lan" };
  await writeConflist(machine, {
    name: "pooled",
    plugins: [{ type: "bridge", bridge: "pool0", capabilities: { ips: true }, ipam }],
  });
  const net = await DriverNetwork.create(machine, { options: { conflist: "pooled" } });
  const one = await machine.container("c1"), other = await machine.container("c2");
  const status = await net.setup(one);
  expect(status.interfaces["eth0"]!.subnets).toEqual([{ gateway: "10.50.0.254", ipnet: "10.50.0.16/24" }]);
  await net.setup(other, { ips: ["10.50.0.20"] });
  expect(await ping(machine, one, "10.50.0.20")).toBe(true);
  expect(await machine.sh(`cd ${POOLS}/lan; cat 10.* | tr -d '\\r' | grep -c pooled`)).toBe("2\n");
  await net.teardown(one);
  await net.teardown(other);
  expect(await machine.sh(`ls ${POOLS}/lan | grep ^10 || true`)).toBe("");
});
