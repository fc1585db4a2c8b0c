/** portmap's conditions: iptables and nft syntax mean the same, and unknown conditions are rejected. */
import { expect, test } from "bun:test";
import { readConditions } from "../../../../src/plugins/meta/portmap/conditions.ts";
import { isAllowed } from "../../../../src/resources/packets/port-mappings/spec.ts";

const read4 = (...words: string[]) => readConditions("conditionsV4", words);
const read6 = (...words: string[]) => readConditions("conditionsV6", words);

test("iptables and nft syntax mean the same", () => {
  const wanted = {
    source: { prefix: "192.0.2.0/24", not: true },
    destination: { prefix: "10.0.0.1/32" },
    inLink: { name: "eth+" },
    outLink: { name: "br0", not: true },
    mark: { value: 0x10, mask: 0xff, not: true },
    protocol: { value: "tcp" },
    ports: { first: 80, last: 90 },
  };
  expect(
    read4(
      "!",
      "-s",
      "192.0.2.0/24",
      "-d",
      "10.0.0.1",
      "-i",
      "eth+",
      "! -o br0",
      "-m",
      "mark",
      "!",
      "--mark",
      "0x10/0xff",
    ),
  ).toEqual({ ...wanted, protocol: undefined, ports: undefined } as never);
  expect(read4("-p", "TCP", "-m", "tcp", "--dport", "80:90")).toEqual({
    protocol: { value: "tcp" },
    ports: { first: 80, last: 90 },
  });
  expect(read4(
    "ip saddr != 192.0.2.0/24 ip daddr == 10.0.0.1 iifname",
    '"eth*"',
    "oif != br0 meta mark & 0xff != 16 tcp dport 80-90",
  )).toEqual(wanted as never);
  expect(read6("--source", "fd00::5", "--destination-port", "53")).toEqual(read6("ip6 saddr fd00::5 th dport 53"));
  expect(read4("meta l4proto != udp")).toEqual(read4("!", "--protocol", "udp"));
  expect(read4("mark 0x1")).toEqual(read4("--mark", "1"));
  expect(read4("ip protocol sctp")).toEqual(read4("-p", "sctp"));
  expect(read6("ip6 nexthdr != udp")).toEqual(read6("!", "-p", "udp"));
  expect(read4("sctp dport 9")).toEqual({ protocol: { value: "sctp" }, ports: { first: 9, last: 9 } });
});

test("conditions on protocol and port select mappings", () => {
  const web = { protocol: "tcp", hostPort: 8080, containerPort: 80 } as const;
  for (const words of [[], ["-p", "tcp"], ["!", "-p", "udp"], ["--dport", "8000:8080"], ["tcp dport != 80"]]) {
    expect([words, isAllowed(readConditions("conditionsV4", words.length === 0 ? ["-i", "x"] : words), web)])
      .toEqual([words, true]);
  }
  for (
    const words of [["-p", "udp"], ["!", "-p", "tcp"], ["! --dport 8080"], ["udp dport 8080"], ["th dport 1-8079"]]
  ) {
    expect([words, isAllowed(readConditions("conditionsV4", words), web)]).toEqual([words, false]);
  }
});

test.each([
  [["-j", "ACCEPT"], '"-j" is not a condition known here'],
  [["!", "-m", "mark", "--mark", "1"], '"! -m" is not a condition known here'],
  [["-m", "comment", "--comment", "x"], '"-m" is not a condition known here'],
  [["-s"], '"" is no address of IPv4'],
  [["-s", "10.0.0.0/33"], '"10.0.0.0/33" is no address of IPv4'],
  [["-s", "0.0.0.0/0"], '"0.0.0.0/0" is every address'],
  [["-s", "fd00::/8"], '"fd00::/8" is no address of IPv4'],
  [["-i", "eth0;reboot"], '"eth0;reboot" is no name of an interface'],
  [["-i", "a234567890123456"], '"a234567890123456" is no name of an interface'],
  [["--mark", "0x100000000"], '"0x100000000" is no number up to 4294967295'],
  [["--mark", "-1"], '"-1" is no number up to 4294967295'],
  [["--dport", "65536"], '"65536" is no number up to 65535'],
  [["--dport", "65536:1"], '"65536" is no number up to 65535'],
  [["--dport", "1:65536"], '"65536" is no number up to 65535'],
  [["icmp dport 80"], '"icmp" is not a condition known here'],
  [["ip protocol icmp"], '"icmp" is no protocol with ports'],
  [["--dport", "1:2:3"], "a range of ports has two ends"],
  [["-p", "icmp"], '"icmp" is no protocol with ports'],
  [["-p", "tcp", "-p", "tcp"], "there are two conditions on the protocol"],
  [["ip", "saddr", "{", "10.0.0.1,", "10.0.0.2", "}"], '"{" is no address of IPv4'],
  [["ip", "ttl", "1"], '"ip" is not a condition known here'],
  [["tcp dport 80 udp dport 80"], "there are two protocols"],
  [["accept"], '"accept" is not a condition known here'],
  [["meta", "skuid", "0"], '"meta skuid" is not a condition known here'],
])("%p is refused, and named", (words, reason) => {
  expect(() => read4(...words)).toThrow(`"conditionsV4": ${reason}`);
});
