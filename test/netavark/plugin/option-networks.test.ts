/** Networks without a file: each plugin by its options, in the kernel and by packets. */
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../support/dhcp/link.ts";
import { OFFER4 } from "../../support/dhcp/offer.ts";
import { dnsmasq, serve4 } from "../../support/dhcp/servers-v4.ts";
import { startService } from "../../support/dhcp/service.ts";
import { lacks } from "../../support/kernel-features.ts";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { openMachine } from "../../support/machine.ts";
import { PodmanNetwork } from "../../support/podman-driver.ts";
import { patiently, ping, serve } from "../../support/traffic.ts";
import { openWire } from "../../support/wire.ts";

const subnets = [{ subnet: "10.8.0.0/24" }], ips = ["10.8.0.5"];

test("ptp, bandwidth and tuning: MTU, rates and sysctls", async () => {
  await using machine = await openMachine();
  const net = await PodmanNetwork.create(machine, {
    subnets,
    options: {
      plugins: "ptp,bandwidth,tuning",
      "ptp.mtu": "1400",
      "bandwidth.ingressRate": "48000000",
      "bandwidth.ingressBurst": "4000000",
      "bandwidth.unshapedSubnets": "172.16.0.0/12,fd05::/60",
      "tuning.sysctl": '{"net.core.somaxconn":"500"}',
      "tuning.txQLen": "77",
    },
  });
  const container = await machine.container("c1");
  await net.once(container, { ips });
  const moment = await quietMoment(machine);
  await net.setup(container, { ips });
  expect(await machine.sh("ip link show eth0", { in: container })).toMatch(/mtu 1400 .* qlen 77/);
  expect(await machine.sh("sysctl -n net.core.somaxconn", { in: container })).toBe("500\n");
  const [veth] = JSON.parse(await machine.sh("ip -j route get 10.8.0.5"));
  const queues = await machine.sh(`tc class show dev ${veth.dev}; tc filter show dev ${veth.dev}`);
  expect(queues).toContain("rate 48Mbit");
  expect(queues).toContain("ac100000/fff00000");
  expect(await ping(machine, container, "10.8.0.1")).toBe(true);
  // A packet larger than the MTU does not leave in one piece.
  const { code, stdout, stderr } = await machine.run(
    ["ping", "-M", "do", "-s", "1380", "-c", "1", ...patiently(), "10.8.0.1"],
    { in: container },
  );
  expect({ code, says: stdout + stderr }).toEqual({ code: 1, says: expect.stringContaining("mtu=1400") });
  await net.teardown(container, { ips });
  expect(await leftSince(moment, machine)).toEqual([]);
});

test("firewall.ingressPolicy=same-bridge keeps the containers of two networks apart", async () => {
  await using machine = await openMachine();
  const create = (name: string, id: string, subnet: string, policy: string) =>
    PodmanNetwork.create(machine, {
      name,
      id: id.repeat(64),
      subnets: [{ subnet }],
      options: { plugins: "bridge", "firewall.backend": "nftables", "firewall.ingressPolicy": policy },
    });
  const reached: Record<string, unknown> = {};
  for (const policy of ["open", "same-bridge"]) {
    const first = await create("first", "a", "10.8.0.0/24", policy);
    const second = await create("second", "b", "10.9.0.0/24", policy);
    const [one, two, stranger] = [await machine.container(), await machine.container(), await machine.container()];
    await first.once(one, { ips });
    await second.once(stranger, { ips: ["10.9.0.5"] });
    const moment = await quietMoment(machine);
    await first.setup(one, { ips });
    await first.setup(two, { ips: ["10.8.0.6"] });
    await second.setup(stranger, { ips: ["10.9.0.5"] });
    // Without a name, each network has a bridge of its own.
    expect((await machine.sh("ls /sys/class/net")).match(/^cni-.*$/gm)).toEqual([
      "cni-aaaaaaaaaaa",
      "cni-bbbbbbbbbbb",
    ]);
    await using server = await serve(machine, one, "tcp");
    expect(await server.ask(two, "10.8.0.5")).toBe("10.8.0.6");
    reached[policy] = await server.ask(stranger, "10.8.0.5") !== undefined;
    await first.teardown(one);
    await first.teardown(two);
    await second.teardown(stranger);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
  expect(reached).toEqual({ open: true, "same-bridge": false });
});

test("host-device: network_interface names the device, which comes back", async () => {
  await using machine = await openMachine();
  await machine.sh("ip link add dev0 type veth peer name dev1; ip link set dev0 address 0a:58:00:00:00:07 mtu 1300");
  const net = await PodmanNetwork.create(machine, {
    network_interface: "dev0",
    subnets,
    options: { plugins: "host-device" },
  });
  const container = await machine.container("c1");
  const moment = await quietMoment(machine);
  const { interfaces } = await net.setup(container, { ips });
  expect(interfaces).toEqual({
    eth0: { mac_address: "0a:58:00:00:00:07", subnets: [{ gateway: "10.8.0.1", ipnet: "10.8.0.5/24" }] },
  });
  expect(await machine.sh("ip addr show eth0", { in: container })).toContain("10.8.0.5/24");
  await net.teardown(container, { ips });
  expect(await machine.sh("ip link show dev0")).toContain("mtu 1300");
  expect(await leftSince(moment, machine, / file \/var\/lib\/cni\/\.patchbay\.lock$/)).toEqual([]);
});

const onWires: { plugin: string; more: Record<string, string>; lacking: boolean; tagged: boolean }[] = [
  { plugin: "vlan", more: { "vlan.vlanId": "7" }, lacking: lacks("VLAN links"), tagged: true },
  { plugin: "macvlan", more: { "macvlan.mode": "private" }, lacking: lacks("macvlan links"), tagged: false },
  { plugin: "ipvlan", more: { "ipvlan.mode": "l2" }, lacking: lacks("ipvlan links"), tagged: false },
];

for (const { plugin, more, lacking, tagged } of onWires) {
  test.skipIf(lacking)(`${plugin} on a link of the host`, async () => {
    await using wire = await openWire(tagged);
    const { machine } = wire;
    const net = await PodmanNetwork.create(machine, {
      network_interface: "m0",
      subnets: [{ subnet: "10.20.0.0/24" }],
      options: { plugins: plugin, ...more },
    });
    const container = await machine.container("pod"), wanted = { ips: ["10.20.0.5"] };
    const moment = await quietMoment(machine);
    const { interfaces } = await net.setup(container, wanted);
    expect(interfaces["eth0"]!.subnets).toEqual([{ gateway: "10.20.0.1", ipnet: "10.20.0.5/24" }]);
    const [link] = JSON.parse(await machine.sh("ip -d -j link show eth0", { in: container }));
    expect(link).toMatchObject({ address: interfaces["eth0"]!.mac_address, linkinfo: { info_kind: plugin } });
    expect(await ping(machine, container, "10.20.0.254")).toBe(true);
    await net.teardown(container, wanted);
    expect(await leftSince(moment, machine, / file \/var\/lib\/cni\/\.patchbay\.lock$/)).toEqual([]);
  });
}

test("a bridge of layer 2 without addresses", async () => {
  await using machine = await openMachine();
  const net = await PodmanNetwork.create(machine, {
    ipam_options: { driver: "none" },
    options: { plugins: "bridge", "bridge.macspoofchk": "true" },
  });
  expect(net.network.ipam_options).toEqual({ driver: "none" });
  const container = await machine.container("c1");
  const { interfaces } = await net.setup(container);
  expect(interfaces["eth0"]!.subnets).toEqual([]);
  expect(await machine.sh("ip addr show eth0", { in: container })).not.toContain("inet 10.");
  await net.teardown(container);
});

test("own addresses of one family alone", async () => {
  await using machine = await openMachine();
  const net = await PodmanNetwork.create(machine, {
    options: { plugins: "bridge", "ipam.type": "host-local", "ipam.ranges": '[[{"subnet":"10.8.0.0/24"}]]' },
  });
  const container = await machine.container("c1");
  await net.setup(container);
  expect(await machine.sh("ip route", { in: container })).toContain("default via 10.8.0.1");
  expect(await machine.sh("ip -6 route", { in: container })).not.toContain("default");
});

test("own addresses: host-local by options, with the default routes of both families", async () => {
  await using machine = await openMachine();
  const net = await PodmanNetwork.create(machine, {
    options: {
      plugins: "bridge",
      "ipam.type": "host-local",
      "ipam.ranges": '[[{"subnet":"10.8.0.0/24","rangeStart":"10.8.0.40"}],[{"subnet":"fd08::/64"}]]',
    },
  });
  expect(net.network.ipam_options).toEqual({ driver: "none" });
  const container = await machine.container("c1"), other = await machine.container("c2");
  const { interfaces } = await net.setup(container);
  expect(interfaces["eth0"]!.subnets!.map(({ ipnet }) => ipnet)).toEqual(["10.8.0.40/24", "fd08::2/64"]);
  const routes = await machine.sh("ip route; ip -6 route", { in: container });
  for (const gateway of ["10.8.0.1", "fd08::1"]) expect(routes).toContain(`default via ${gateway}`);
  const { code, json } = await net.call("setup", other, { ips: ["10.8.0.40"] });
  expect({ code, json }).toEqual({ code: 1, json: { error: expect.stringContaining("10.8.0.40") } });
  await net.teardown(container);
  expect((await net.setup(other, { ips: ["10.8.0.40"] })).interfaces["eth0"]!.subnets![0]!.ipnet).toBe(
    "10.8.0.40/24",
  );
});

test("--ipam-driver dhcp: the lease's address, gateway and name server, given back at teardown", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, server = await serve4(dnsmasq, segment.site, OFFER4);
  await using service = await startService(segment);
  const net = await PodmanNetwork.create(machine, {
    ipam_options: { driver: "dhcp" },
    network_interface: "br0",
    options: {
      plugins: "bridge",
      "ipam.daemonSocketPath": service.socket,
      "ipam.dataDir": service.directory,
    },
  });
  expect(net.network).toMatchObject({ ipam_options: { driver: "none" }, options: { "ipam.type": "dhcp" } });
  const container = await machine.container("c1");
  const { interfaces: { eth0 } } = await net.setup(container), [ip] = eth0!.subnets![0]!.ipnet.split("/");
  expect(await ping(machine, container, "192.168.77.1")).toBe(true);
  await server.untilLease(ip!, "active");
  // As `network reload` has it, with what the container had.
  await net.teardown(container);
  await server.untilLease(ip!, "free");
  const again = await net.setup(container, { mac: eth0!.mac_address });
  expect(again.interfaces["eth0"]!.mac_address).toBe(eth0!.mac_address);
  await machine.removeContainer(container);
  await net.teardown(container);
  expect(service.records()).toEqual([]);
});
