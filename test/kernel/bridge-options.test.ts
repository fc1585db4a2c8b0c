/** Each option of bridge, seen in the kernel. The plugin's documentation says what to expect. */
import { expect, test } from "bun:test";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { snapshot } from "../support/snapshot.ts";

const v4 = { type: "host-local", subnet: "10.20.0.0/24" };
const v6 = { type: "host-local", ranges: [[{ subnet: "fd20::/64" }]] };
const port = "host link veth>c1/eth0 linkinfo.info_slave_data";
const MAC = "c2:11:22:33:44:55";

interface Row {
  name: string;
  conf: Record<string, unknown>;
  args?: string;
  before?: string;
  needs?: Feature;
  /** Lines of the snapshot begin so. */
  shows?: string[];
  hides?: string[];
}

const rows: Row[] = [
  {
    name: "defaults",
    conf: { ipam: v4 },
    shows: [
      'host link br0 linkinfo.info_kind="bridge"',
      'host link veth>c1/eth0 master="br0"',
      `${port}.hairpin=false`,
      `${port}.isolated=false`,
      "host link br0 promiscuity=0",
      "host sysctl ipv6/conf/br0/accept_ra=0",
      "host sysctl ipv6/conf/veth>c1/eth0/accept_ra=0",
      "host sysctl ipv4/ip_forward=0",
      "c1 address eth0 10.20.0.2/24 ",
      'c1 link eth0 operstate="UP"',
      "c1 sysctl ipv4/conf/eth0/arp_notify=1",
    ],
    hides: ["host address br0 10.", 'c1 route {"type":"unicast","dst":"default"'],
  },
  {
    name: "isGateway",
    conf: { isGateway: true, ipam: v4 },
    shows: [
      "host address br0 10.20.0.1/24 ",
      "host sysctl ipv4/ip_forward=1",
      "host sysctl ipv6/conf/all/forwarding=0",
      "host link br0 addr_assign_type=3",
    ],
  },
  {
    name: "isGateway with IPv6",
    conf: { isGateway: true, ipam: v6 },
    shows: [
      "host address br0 fd20::1/64 ",
      "host sysctl ipv6/conf/all/forwarding=1",
      "host sysctl ipv4/ip_forward=0",
      "c1 address eth0 fd20::2/64 ",
      "c1 sysctl ipv6/conf/eth0/keep_addr_on_down=1",
      "c1 sysctl ipv6/conf/eth0/accept_dad=0",
    ],
  },
  {
    name: "isDefaultGateway",
    conf: { isDefaultGateway: true, ipam: v4 },
    shows: [
      `c1 route {"type":"unicast","dst":"default","gateway":"10.20.0.1","dev":"eth0","table":"main"`,
    ],
  },
  {
    name: "isDefaultGateway beside a default route without gateway",
    conf: {
      isDefaultGateway: true,
      ipam: { ...v4, routes: [{ dst: "0.0.0.0/0" }] },
    },
    shows: [`c1 route {"type":"unicast","dst":"default","gateway":"10.20.0.1"`],
  },
  {
    name: "isGateway on a bridge of others that lost its MAC with its last port",
    conf: { isGateway: true, ipam: v4 },
    before:
      "ip link add br0 type bridge; ip link set br0 up; ip link add p0 master br0 type veth peer p1; ip link del p0",
    shows: ["host address br0 10.20.0.1/24 "],
    hides: ['host link br0 address="00:00:00:00:00:00"'],
  },
  {
    name: "forceAddress",
    conf: { isGateway: true, forceAddress: true, ipam: v4 },
    before: "ip link add br0 type bridge; ip address add 10.99.0.1/24 dev br0",
    shows: ["host address br0 10.20.0.1/24 "],
    hides: ["host address br0 10.99.0.1/24 "],
  },
  {
    name: "mtu",
    conf: { mtu: 1400, ipam: v4 },
    shows: [
      "host link br0 mtu=1400",
      "host link veth>c1/eth0 mtu=1400",
      "c1 link eth0 mtu=1400",
    ],
  },
  { name: "hairpinMode", conf: { hairpinMode: true, ipam: v4 }, shows: [`${port}.hairpin=true`] },
  { name: "promiscMode", conf: { promiscMode: true, ipam: v4 }, shows: ["host link br0 promiscuity=1"] },
  {
    name: "portIsolation",
    conf: { portIsolation: true, ipam: v4 },
    needs: "isolated bridge ports",
    shows: [`${port}.isolated=true`],
  },
  {
    name: "enabledad",
    conf: { enabledad: true, isGateway: true, ipam: v6 },
    shows: [
      "c1 sysctl ipv6/conf/eth0/accept_dad=1",
      "c1 sysctl ipv6/conf/eth0/enhanced_dad=1",
    ],
    hides: [`c1 address eth0 fd20::2/64 {"family":"inet6","tentative":true`],
  },
  {
    name: "disableContainerInterface",
    conf: { disableContainerInterface: true },
    shows: [
      `c1 link eth0 flags=["BROADCAST","MULTICAST"]`,
    ],
  },
  { name: "layer 2 only", conf: {}, shows: ['c1 link eth0 operstate="UP"'], hides: ["c1 address eth0 10."] },
  {
    name: "mac by capability",
    conf: { runtimeConfig: { mac: MAC }, ipam: v4 },
    shows: [`c1 link eth0 address="${MAC}"`],
  },
  {
    name: "mac by CNI_ARGS",
    conf: { ipam: v4 },
    args: `IgnoreUnknown=1;MAC=${MAC}`,
    shows: [
      `c1 link eth0 address="${MAC}"`,
    ],
  },
  {
    name: "ips by capability",
    conf: { runtimeConfig: { ips: ["10.20.0.44/24"] }, ipam: v4 },
    shows: ["c1 address eth0 10.20.0.44/24 "],
  },
  {
    name: "route attributes",
    conf: {
      isGateway: true,
      ipam: { ...v4, routes: [{ dst: "192.168.0.0/16", priority: 77, mtu: 1300, advmss: 1200, table: 99 }] },
    },
    shows: [
      `c1 route {"type":"unicast","dst":"192.168.0.0/16","gateway":"10.20.0.1","dev":"eth0","table":"99"`,
    ],
  },
  {
    name: "vlan",
    conf: { vlan: 100, ipam: v4 },
    needs: "bridge VLAN filtering",
    shows: [
      "host link br0 linkinfo.info_data.vlan_filtering=1",
      "host vlan veth>c1/eth0 100-100 PVID,Egress Untagged",
    ],
    hides: ["host vlan veth>c1/eth0 1-1 "],
  },
  {
    name: "vlan with preserveDefaultVlan",
    conf: { vlan: 100, preserveDefaultVlan: true, ipam: v4 },
    needs: "bridge VLAN filtering",
    shows: ["host vlan veth>c1/eth0 1-1 ", "host vlan veth>c1/eth0 100-100 PVID,Egress Untagged"],
  },
  {
    name: "vlanTrunk",
    conf: { vlanTrunk: [{ minID: 10, maxID: 12 }, { id: 20 }, { id: 11 }] },
    needs: "bridge VLAN filtering",
    shows: [
      "host vlan veth>c1/eth0 1-1 PVID,Egress Untagged",
      "host vlan veth>c1/eth0 10-10 ",
      "host vlan veth>c1/eth0 11-11 ",
      "host vlan veth>c1/eth0 12-12 ",
      "host vlan veth>c1/eth0 20-20 ",
    ],
  },
  {
    name: "vlan with vlanTrunk",
    conf: { vlan: 100, vlanTrunk: [{ id: 20 }] },
    needs: "bridge VLAN filtering",
    shows: ["host vlan veth>c1/eth0 100-100 PVID,Egress Untagged", "host vlan veth>c1/eth0 20-20 "],
    hides: ["host vlan veth>c1/eth0 1-1 "],
  },
  {
    name: "vlan with a gateway",
    conf: { vlan: 100, isGateway: true, ipam: v4 },
    needs: "bridge VLAN filtering",
    shows: [
      "host address br0.100 10.20.0.1/24 ",
      "host vlan veth>br0.100 100-100 PVID,Egress Untagged",
      'host link br0.100 operstate="UP"',
    ],
    hides: ["host address br0 10.20.0.1/24 ", "host vlan veth>br0.100 1-1 "],
  },
];

for (const { name, conf, args, before, needs, shows = [], hides = [] } of rows) {
  test.skipIf(lacks(needs))(name, async () => {
    await using machine = await openMachine();
    const container = await machine.container("c1");
    if (before !== undefined) await machine.sh(before);
    const net = network(machine, { type: "bridge", bridge: "br0", ...conf });
    const { interfaces, ips = [] } = await net.add(container, { args });
    for (const ip of ips) {
      expect(interfaces[ip.interface]).toMatchObject({ name: "eth0", sandbox: container.netnsPath });
    }
    await quietMoment(machine);
    const { lines } = await snapshot(machine, { macs: [MAC] });
    const begins = (start: string) => lines.some((line) => line.startsWith(start));
    expect({ missing: shows.filter((start) => !begins(start)), surplus: hides.filter(begins) })
      .toEqual({ missing: [], surplus: [] });
    await net.check(container);
    await net.del(container);
  });
}

const refused = [
  { name: "vlan beyond 4094", conf: { vlan: 4095 }, says: "invalid VLAN ID 4095 (must be between 0 and 4094)" },
  { name: "trunk id beyond 4094", conf: { vlanTrunk: [{ id: 4095 }] }, says: "incorrect trunk id parameter" },
  { name: "trunk minID 0", conf: { vlanTrunk: [{ minID: 0, maxID: 5 }] }, says: "incorrect trunk minID parameter" },
  {
    name: "trunk maxID beyond",
    conf: { vlanTrunk: [{ minID: 1, maxID: 5000 }] },
    says: "incorrect trunk maxID parameter",
  },
  {
    name: "trunk reversed",
    conf: { vlanTrunk: [{ minID: 9, maxID: 5 }] },
    says: "minID is greater than maxID in trunk parameter",
  },
  {
    name: "trunk without minID",
    conf: { vlanTrunk: [{ maxID: 5 }] },
    says: "minID and maxID should be configured simultaneously, minID is missing",
  },
  {
    name: "trunk without maxID",
    conf: { vlanTrunk: [{ minID: 5 }] },
    says: "minID and maxID should be configured simultaneously, maxID is missing",
  },
  {
    name: "hairpin and promiscuous",
    conf: { hairpinMode: true, promiscMode: true },
    says: "cannot set hairpin mode and promiscuous mode at the same time",
  },
  {
    name: "disabled interface with IPAM",
    conf: { disableContainerInterface: true, ipam: v4 },
    says: "cannot use IPAM when DisableContainerInterface flag is set",
  },
  {
    name: "unknown backend",
    conf: { ipMasq: true, ipMasqBackend: "pf", ipam: v4 },
    says: `unknown ipmasq backend "pf"`,
  },
];

test.each(refused)("refused before anything is made: $name", async ({ conf, says }) => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const before = await snapshot(machine);
  const answer = await network(machine, { type: "bridge", bridge: "br0", ...conf }).call("ADD", container);
  expect(answer.code).toBe(1);
  expect([2, 7]).toContain(answer.json.code); // 2 is for a value that is not supported
  expect(answer.json.msg).toContain(says);
  expect((await snapshot(machine)).lines).toEqual(before.lines);
});

test("a bridge whose only port is down has the link-local address of the MAC address that it keeps", async () => {
  await using machine = await openMachine();
  const net = network(machine, { type: "bridge", bridge: "br0", disableContainerInterface: true });
  const look = async () => {
    const [link] = JSON.parse(await machine.sh("ip -j addr show dev br0"));
    // deno-lint-ignore no-explicit-any
    const local = link.addr_info.filter(({ family }: any) => family === "inet6").map(({ local }: any) => local);
    return { mac: link.address as string, local };
  };
  const { interfaces } = await net.add(await machine.container());
  const { mac, local } = await look();
  expect(mac).toBe(interfaces[0].mac);
  const [first, ...rest] = Buffer.from(mac.replaceAll(":", ""), "hex");
  const groups = Buffer.from([first! ^ 2, rest[0]!, rest[1]!, 0xff, 0xfe, ...rest.slice(2)]).toString("hex");
  expect(local).toEqual([new URL(`http://[fe80::${groups.match(/..../g)!.join(":")}]`).hostname.slice(1, -1)]);
  // A bridge without an address of its own takes the lowest of its ports.
  await net.add(await machine.container());
  await machine.sh("ip link add low address 02:00:00:00:00:01 type veth peer name other; ip link set low master br0");
  expect(await look()).toEqual({ mac, local });
  const up = network(machine, { type: "bridge", bridge: "br0", ipam: v4 });
  await up.add(await machine.container());
  expect(await machine.sh("until ip link show br0 | grep 'state UP'; do :; done")).toContain("state UP");
});
