/** CHECK of bridge finds and names everything that is broken; STATUS says whether ADD could work. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

const ipam = {
  type: "host-local",
  ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]],
  routes: [{ dst: "192.168.0.0/16" }],
};
const spoofGuard = lacks("nftables bridge family") ? {} : { macspoofchk: true };
const bridge = { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ...spoofGuard, ipam };
const PORT = "$(ls /sys/class/net/br0/brif)";

const broken: { name: string; how: string; says: RegExp; conf?: Record<string, unknown>; needsSpoofGuard?: true }[] =
  [
    { name: "container link gone", how: "ip -n c1 link del eth0", says: /eth0/ },
    { name: "container link down", how: "ip -n c1 link set eth0 down", says: /eth0|192\.168\.0\.0\/16/ },
    { name: "IPv4 address gone", how: "ip -n c1 address del 10.20.0.2/24 dev eth0", says: /10\.20\.0\.2\/24/ },
    { name: "IPv6 address gone", how: "ip -n c1 address del fd20::2/64 dev eth0", says: /fd20::2\/64/ },
    { name: "route gone", how: "ip -n c1 route del 192.168.0.0/16", says: /192\.168\.0\.0\/16/ },
    { name: "default route gone", how: "ip -n c1 route del default", says: /0\.0\.0\.0\/0|default/ },
    {
      name: "container MAC changed",
      how: "ip -n c1 link set eth0 address 02:00:00:00:00:07",
      says: /02:00:00:00:00:07/,
    },
    { name: "taken off the bridge", how: `ip link set ${PORT} nomaster`, says: /br0/ },
    { name: "host end down", how: `ip link set ${PORT} down`, says: /veth[0-9a-f]{8}/ },
    { name: "bridge gone", how: "ip link del br0", says: /br0/ },
    { name: "gateway address gone", how: "ip address del 10.20.0.1/24 dev br0", says: /10\.20\.0\.1/ },
    { name: "forwarding off", how: "sysctl -qw net.ipv4.ip_forward=0", says: /forward/ },
    {
      name: "masquerade gone (iptables)",
      how: "iptables -t nat -F POSTROUTING",
      says: /masquerade|POSTROUTING/i,
      conf: { ipMasqBackend: "iptables" },
    },
    {
      name: "masquerade gone (nftables)",
      how: "nft flush ruleset",
      says: /masquerade/i,
      conf: { ipMasqBackend: "nftables" },
    },
    {
      name: "spoof guard gone",
      how: "for table in $(nft list tables bridge | cut -d ' ' -f 3); do nft delete table bridge $table; done",
      says: /spoof/i,
      needsSpoofGuard: true,
    },
    { name: "hairpin switched on", how: `bridge link set dev ${PORT} hairpin on`, says: /hairpin/ },
    { name: "lease gone", how: "rm -rf /var/lib/cni/networks/net", says: /ctr-c1/ },
  ];

for (const { name, how, says, conf, needsSpoofGuard } of broken) {
  test.skipIf(needsSpoofGuard === true && lacks("nftables bridge family"))(`CHECK names it: ${name}`, async () => {
    await using machine = await openMachine();
    const container = await machine.container("c1");
    const net = network(machine, { ...bridge, ...conf });
    await net.add(container);
    await net.check(container);
    await machine.sh(how);
    const answer = await net.call("CHECK", container);
    expect(answer.code).toBe(1);
    expect(`${answer.json?.msg} ${answer.json?.details ?? ""}`).toMatch(says);
  });
}

test("CHECK finds it without a ledger too", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, bridge);
  await net.add(container);
  await machine.sh("rm -r /run/patchbay");
  await net.check(container);
  await machine.sh("ip -n c1 address del 10.20.0.2/24 dev eth0");
  const answer = await net.call("CHECK", container);
  expect(answer.code).toBe(1);
  expect(answer.json.msg).toContain("10.20.0.2/24");
});

test("CHECK goes by prevResult where a later plugin changed the MAC", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, bridge);
  const prevResult = await net.add(container);
  const mac = prevResult.interfaces[2].mac = "02:00:00:00:00:07";
  const answer = await net.call("CHECK", container, { conf: { prevResult } });
  expect(answer.json.msg).toMatch(/Mac 02:00:00:00:00:07 doesn't match/);
  await machine.sh(`ip link set eth0 address ${mac}`, { in: container });
  await net.check(container, { conf: { prevResult } });
});

test.each([{ type: "bridge", bridge: "br0" }, { type: "ptp" }, { type: "tap" }])(
  "CHECK asks for addresses and routes that prevResult has and ADD did not make: $type",
  async (conf) => {
    await using machine = await openMachine();
    const container = await machine.container("c1");
    const net = network(machine, { ...conf, ipam });
    const { ips, routes, ...result } = await net.add(container);
    const given: [how: string, says: string, prevResult: unknown][] = [
      [
        "ip address add 10.20.0.99/24 dev eth0",
        "10.20.0.99/24",
        { ...result, ips: [...ips, { ...ips[0], address: "10.20.0.99/24" }], routes },
      ],
      [
        "ip route add 198.51.100.0/24 via 10.20.0.1 dev eth0",
        "198.51.100.0/24",
        { ...result, ips, routes: [...routes, { dst: "198.51.100.0/24" }] },
      ],
    ];
    for (const [how, says, prevResult] of given) {
      expect((await net.call("CHECK", container, { conf: { prevResult } })).json?.msg).toContain(says);
      await machine.sh(how, { in: container });
      await net.check(container, { conf: { prevResult } });
    }
  },
);

test("CHECK finds a route whose gateway is 0.0.0.0, which is none", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const addresses = [{ address: "10.20.0.2/24", gateway: "10.20.0.1" }];
  const routes = [{ dst: "10.9.0.0/16", gw: "0.0.0.0", scope: 253 }];
  const net = network(machine, { type: "bridge", bridge: "br0", ipam: { type: "static", addresses, routes } });
  await net.add(container);
  expect(await machine.sh("ip -n c1 route show 10.9.0.0/16")).toContain("dev eth0 scope link");
  await net.check(container);
  await machine.sh("ip -n c1 route del 10.9.0.0/16");
  expect((await net.call("CHECK", container)).json.msg).toContain("10.9.0.0/16");
});

test("CHECK asks for prevResult", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, bridge);
  await net.add(container);
  const answer = await net.call("CHECK", container, { conf: { prevResult: undefined } });
  expect(answer.code).toBe(1);
  expect(answer.json.msg).toBe("Required prevResult missing");
});

test("CHECK of a layer 2 attachment succeeds", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, { type: "bridge", bridge: "br0" });
  await net.add(container);
  await net.check(container);
});

test("CHECK is not disturbed by somebody listening on the bridge", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const net = network(machine, bridge);
  await net.add(container);
  await machine.sh("ip link set br0 promisc on");
  await net.check(container);
});

test("CHECK of what the Go plugins attached", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const conf = { ...bridge, cniVersion: "1.0.0" };
  const prevResult = await network(machine, conf, "/usr/lib/cni").add(container);
  await network(machine, conf).check(container, { conf: { prevResult } });
});

test("STATUS succeeds where ADD would", async () => {
  await using machine = await openMachine();
  const answer = await network(machine, bridge).call("STATUS", undefined);
  expect({ code: answer.code, stdout: answer.stdout }).toEqual({ code: 0, stdout: "" });
});

test("STATUS says that the IPAM plugin is missing", async () => {
  await using machine = await openMachine();
  const answer = await network(machine, { ...bridge, ipam: { type: "nothing" } }).call("STATUS", undefined);
  expect(answer.code).toBe(1);
  expect(answer.json.msg).toContain("nothing");
});
