/** Published ports as nft lists them: of all addresses, of one, of a former owner; what is missed, and what is removed. */
import { expect, test } from "bun:test";
import { networkRulesKind } from "../../../src/resources/netavark/network-rules.ts";
import { publishedPortsKind } from "../../../src/resources/netavark/published-ports.ts";
import {
  listed,
  of4,
  of6,
  ofOne,
  openWithTable,
  orchard,
  port,
  stepsOf,
} from "../../support/netavark/rules-table.ts";
import { drive } from "../../support/resources.ts";

const rules = stepsOf(networkRulesKind, orchard), ports = stepsOf(publishedPortsKind, ofOne);

const ID = 'comment "id: c1, if: eth0, net: orchard"';
const kinds: [what: string, ports: object[], lines: string[]][] = [
  ["of all addresses", [port, { ...port, protocol: "udp", hostPort: 9000, range: 2 }], [
    `${of4}_ports: tcp . 8080 ${ID} : 10.8.0.9 . 80`,
    `${of4}_ports: udp . 9000 ${ID} : 10.8.0.9 . 80`,
    `${of4}_ports: udp . 9001 ${ID} : 10.8.0.9 . 81`,
    `${of6}_ports: tcp . 8080 ${ID} : fd08::9 . 80`,
    `${of6}_ports: udp . 9000 ${ID} : fd08::9 . 80`,
    `${of6}_ports: udp . 9001 ${ID} : fd08::9 . 81`,
  ]],
  ["of one address", [
    { ...port, hostIp: "192.0.2.1" },
    { ...port, protocol: "sctp", hostPort: 9000, containerPort: 90, range: 2, hostIp: "2001:db8::1" },
  ], [
    `NETAVARK-HOSTPORT-DNAT: ip daddr 192.0.2.1 tcp dport 8080 jump ${of4}_dnat ${ID}`,
    `NETAVARK-HOSTPORT-DNAT: ip6 daddr 2001:db8::1 sctp dport 9000-9001 jump ${of6}_dnat ${ID}`,
    `${of4}_dnat: ip saddr 10.8.0.0/24 ip daddr 192.0.2.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK ${ID}`,
    `${of4}_dnat: ip saddr 127.0.0.1 ip daddr 192.0.2.1 tcp dport 8080 jump NETAVARK-HOSTPORT-SETMARK ${ID}`,
    `${of4}_dnat: ip daddr 192.0.2.1 tcp dport 8080 ct mark set meta mark | 0x00001000 dnat ip to 10.8.0.9:80 ${ID}`,
    `${of6}_dnat: ip6 saddr fd08::/64 ip6 daddr 2001:db8::1 sctp dport 9000-9001 jump NETAVARK-HOSTPORT-SETMARK ${ID}`,
    `${of6}_dnat: ip6 daddr 2001:db8::1 sctp dport 9000 ct mark set meta mark | 0x00001000 dnat ip6 to [fd08::9]:90 ${ID}`,
    `${of6}_dnat: ip6 daddr 2001:db8::1 sctp dport 9001 ct mark set meta mark | 0x00001000 dnat ip6 to [fd08::9]:91 ${ID}`,
  ]],
  ["of all addresses of one family", [
    { ...port, hostIp: "0.0.0.0" },
    { ...port, hostPort: 8081, hostIp: "::" },
  ], [
    `${of4}_ports: tcp . 8080 ${ID} : 10.8.0.9 . 80`,
    `${of6}_ports: tcp . 8081 ${ID} : fd08::9 . 80`,
  ]],
];

test.each(kinds)("published ports %s", async (_, published, lines) => {
  await using machine = await openWithTable(rules);
  const spec = { ...ofOne, ports: published };
  await drive(machine, [rules("apply")]);
  const before = await listed(machine);
  // Twice is as once.
  const steps = [ports("apply", spec), ports("apply", spec), ports("verify", spec)];
  expect(await drive(machine, steps)).toEqual(["applied", "applied", []]);
  expect((await listed(machine)).filter((line) => !before.includes(line))).toEqual(lines);
  expect(await drive(machine, [ports("remove", spec)])).toEqual(["removed"]);
  expect(await listed(machine)).toEqual(before);
});

test("a port is its last owner's where no ledger records the one before, and what is missing is told", async () => {
  await using machine = await openWithTable(rules);
  const both = [port, { ...port, hostPort: 8081, hostIp: "192.0.2.1" }, { ...port, hostPort: 8082, hostIp: "::1" }];
  const one = { ...ofOne, ports: both }, two = { ...one, containerId: "c2", ports: [port] };
  await drive(machine, [rules("apply"), ports("apply", one), ports("apply", two)]);
  const elements = async () => (await listed(machine)).filter((line) => line.includes("tcp . 8080"));
  expect(await drive(machine, [ports("verify", two), ports("verify", one)])).toEqual([
    [],
    Array(2).fill("port 8080/tcp belongs to container c2, interface eth0 of network orchard"),
  ]);
  const taken = await elements();
  expect(taken).toEqual([expect.stringContaining("id: c2"), expect.stringContaining("id: c2")]);
  expect(await drive(machine, [ports("remove", one)])).toEqual(["removed"]);
  expect(await elements()).toEqual(taken);
  expect(await drive(machine, [ports("remove", two), ports("verify", one)])).toEqual([
    "removed",
    ["port 8080/tcp is missing", "port 8080/tcp is missing", "7 rules for ports of one address are missing"],
  ]);
});

test("a lost rule comes back, and the others are not written again", async () => {
  await using machine = await openWithTable(rules);
  const spec = { ...ofOne, ports: [{ ...port, hostIp: "192.0.2.1" }] };
  await drive(machine, [rules("apply"), ports("apply", spec)]);
  const before = await listed(machine);
  for (const chain of ["NETAVARK-HOSTPORT-DNAT", `${of4}_dnat`]) {
    const table = await machine.sh(`nft -a list chain inet netavark ${chain}`);
    const [, handle] = /192\.0\.2\.1.* handle (\d+)/.exec(table)!;
    await machine.sh(`nft delete rule inet netavark ${chain} handle ${handle}`);
    expect(await drive(machine, [ports("verify", spec), ports("repair", spec), ports("verify", spec)])).toEqual([
      ["1 rules for ports of one address are missing"],
      "repaired",
      [],
    ]);
    expect((await listed(machine)).sort()).toEqual([...before].sort());
  }
});

const forms = [["netavark's form", "ct mark set meta mark or 0x1000 "], [
  "the form of netavark before 2.1",
  "",
]] as const;

test.each(forms)(
  "without a ledger, rules in %s go that lead to the container, not its neighbour's",
  async (_, mark) => {
    await using machine = await openWithTable(rules);
    const write = (address: string, hostPort: number) =>
      machine.sh(`nft -f - <<END
      add rule inet netavark NETAVARK-HOSTPORT-DNAT tcp dport ${hostPort} jump ${of4}_dnat
      add rule inet netavark ${of4}_dnat ip saddr 10.8.0.0/24 tcp dport ${hostPort} jump NETAVARK-HOSTPORT-SETMARK
      add rule inet netavark ${of4}_dnat ip saddr 127.0.0.1 tcp dport ${hostPort} jump NETAVARK-HOSTPORT-SETMARK
      add rule inet netavark ${of4}_dnat tcp dport ${hostPort} ${mark}dnat ip to ${address}:80
END`);
    await drive(machine, [rules("apply")]);
    await write("10.8.0.8", 8081);
    const others = { ...ofOne, containerId: "c2", ports: [{ ...port, hostIp: "192.0.2.1" }] };
    await drive(machine, [ports("apply", others)]);
    const before = await listed(machine);
    await write("10.8.0.9", 8080);
    expect(await drive(machine, [ports("remove", ofOne)])).toEqual(["removed"]);
    expect(await listed(machine)).toHaveLength(before.length + 4);
    await drive(machine, [ports("apply", { ...ofOne, ports: [{ ...port, hostIp: "192.0.2.2" }] })]);
    const both = { ...ofOne, ports: [port, { ...port, hostIp: "192.0.2.2" }] };
    expect(await drive(machine, [ports("remove", both, true)])).toEqual(["removed"]);
    expect(await listed(machine)).toEqual(before);
  },
);
