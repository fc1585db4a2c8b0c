/** What CHECK of bridge goes by (altered.test.ts has what it finds); STATUS says whether ADD could work. */
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
