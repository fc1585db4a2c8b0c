/** The plugin dhcp with terms that no server should set: each is refused with words, or made harmless. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { framesOf, openScene, routesIn, untilRoutes } from "../../../support/dhcp/scene.ts";
import type { Rule } from "../../../support/dhcp/script.ts";
import { addressesIn } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", SERVER = "192.168.77.1";
const { addresses, names, routes, text, u32 } = value;

const refused: [what: string, rule: Rule, words: string][] = [
  ["no mask", { options: { 1: null } }, "DHCP option Subnet Mask not found in DHCPACK"],
  ["a mask with holes", { options: { 1: addresses("255.0.255.0") } }, "the subnet mask is 255.0.255.0"],
  ["a mask of 0", { options: { 1: addresses("0.0.0.0") } }, "the subnet mask is 0.0.0.0"],
  ["a mask of 7 bits", { options: { 1: addresses("254.0.0.0") } }, "the subnet mask is 254.0.0.0"],
  ["a mask of 3 bytes", { options: { 1: "ffffff" } }, "the subnet mask is 255.255.255"],
  ["0.0.0.0", { address: "0.0.0.0" }, "0.0.0.0/24 is no address of a host"],
  ["loopback", { address: "127.0.0.1" }, "127.0.0.1/24 is no address of a host"],
  ["multicast", { address: "224.0.0.5" }, "224.0.0.5/24 is no address of a host"],
  ["broadcast", { address: "255.255.255.255" }, "255.255.255.255/24 is no address of a host"],
  ["the subnet's first", { address: "192.168.77.0" }, "192.168.77.0/24 is no address of a host"],
  ["the subnet's last", { address: "192.168.77.255" }, "192.168.77.255/24 is no address of a host"],
  ["the server's", { address: SERVER }, "the address is the server's or a router's"],
  [
    "a router's",
    { address: ADDRESS, options: { 3: addresses(SERVER, ADDRESS) } },
    "the address is the server's or a router's",
  ],
  ["a lease of 0", { options: { 51: u32(0) } }, "the lease time is 0 (option 51)"],
  ["an option longer than the packet", { extra: "0cff" }, "no server has answered DISCOVER"],
];

test("what cannot be used: ADD says why", async () => {
  const hosts = Object.fromEntries(refused.map(([, rule], index) => [`h${index}`, rule]));
  await using scene = await openScene({ address: ADDRESS, hosts });
  const { machine, server, service } = scene;
  const containers = await inTurn(refused.map((_, index) => () => machine.container(`c${index}`)));
  const answers = await Promise.all(containers.map(async (container, index) => {
    const net = service.network({}, { timeout: 10, hostname: `h${index}` });
    const { code, json } = await net.call("ADD", container);
    return { what: refused[index]![0], code, msg: json.msg };
  }));
  expect(answers).toEqual(
    refused.map(([what, , words]) => ({ what, code: 1, msg: expect.stringContaining(words) })),
  );
  expect(server.received().every(({ kind }) => kind === "DISCOVER")).toBe(true);
  expect(service.records()).toEqual([]);
});

async function inTurn<Value>(works: (() => Promise<Value>)[]): Promise<Value[]> {
  const values: Value[] = [];
  for (const work of works) values.push(await work());
  return values;
}

const taken: [what: string, rule: Rule, bits: number, valid: [number, number]][] = [
  ["no lease time", { options: { 51: null } }, 24, [3000, 3600]],
  ["a lease without end", { options: { 51: "ffffffff" } }, 24, [Infinity, Infinity]],
  ["the longest lease with an end", { options: { 51: "fffffffe" } }, 24, [4e9, 0xfffffffe]],
  ["a mask of 32 bits", { options: { 1: addresses("255.255.255.255"), 3: null } }, 32, [900, 1000]],
  ["a mask of 31 bits", { options: { 1: addresses("255.255.255.254"), 3: null } }, 31, [900, 1000]],
  ["a mask of 8 bits", { options: { 1: addresses("255.0.0.0") } }, 8, [900, 1000]],
  ["T1 after the lease", { options: { 58: u32(5000), 59: u32(6000) } }, 24, [900, 1000]],
  ["T1 of 3 bytes", { options: { 58: "000001" } }, 24, [900, 1000]],
];

test("what can be used as it is", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  for (const [what, rule, bits, [least, most]] of taken) {
    server.tell({ address: ADDRESS, leaseSeconds: 1000, rules: { any: rule } });
    const { ips } = await net.add(container);
    expect({ what, address: ips[0].address }).toEqual({ what, address: `${ADDRESS}/${bits}` });
    const isRight = ({ valid }: { valid: number }) => valid >= least && valid <= most;
    await untilTrue(() => addressesIn(segment, container), (found) => found.length === 1 && isRight(found[0]!));
    await net.del(container);
  }
});

test("options that are malformed are passed over, each with a line in the log", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  const malformed: Record<number, string> = {
    3: "c0a84d",
    6: "c0a84d01c0",
    15: text("not a domain/name"),
    26: "0578ff",
    33: "0a000000c0a84d",
    119: "05" + text("ab"),
    121: "18c0a84e",
  };
  server.change({ options: malformed });
  const { ips, routes: given, dns } = await net.add(container);
  expect(ips).toEqual([{ address: `${ADDRESS}/24`, interface: 2 }]);
  expect([given ?? [], dns ?? {}]).toEqual([[], {}]);
  expect(await routesIn(scene, container)).toEqual([]);
  expect((await linkIn(machine, container)).mtu).toBe(1500);
  for (const [number, hex] of Object.entries(malformed)) {
    expect(service.log()).toContain(`option ${number} is malformed: ${hex}`);
  }
  await net.del(container);
});

test("routers that the link does not lead to are passed over; over an on-link route they are used", async () => {
  await using scene = await openScene({ address: ADDRESS, options: { 3: addresses("10.0.0.1", SERVER) } });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  const { ips } = await net.add(container);
  expect(ips[0].gateway).toBe(SERVER);
  expect(await untilRoutes(scene, container, (all) => all.length > 0)).toEqual([`default via ${SERVER}`]);
  expect(service.log()).toContain("router 10.0.0.1 is not on the link");
  await net.del(container);
  const far = routes(["0.0.0.0/0", "10.0.0.1"], ["10.9.0.0/16", "10.0.0.2"], ["10.0.0.1/32", "0.0.0.0"]);
  server.change({ options: { 1: addresses("255.255.255.255"), 121: far } });
  await net.add(container);
  expect(await routesIn(scene, container)).toEqual(["10.0.0.1", "default via 10.0.0.1"]);
  await net.del(container);
});

test("options in the fields for names, options in two pieces, and as long a message as a link carries", async () => {
  const search = names("a.test", "b.test"), middle = 2 * 4;
  const filler = ("e0ff" + "aa".repeat(255)).repeat(4) + "e049" + "bb".repeat(73);
  await using scene = await openScene({
    address: ADDRESS,
    rules: {
      any: {
        options: { 52: "03", 3: null },
        file: `0304${addresses(SERVER)}ff`,
        sname: `0604${addresses("192.168.77.53")}ff`,
        extra: piece(119, search.slice(0, middle)) + piece(119, search.slice(middle)) + filler,
      },
    },
  });
  const { segment, machine, service } = scene;
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "udp" });
  const container = await machine.container("c1"), net = service.network();
  const { ips, dns } = await net.add(container);
  expect(ips[0].gateway).toBe(SERVER);
  expect(dns).toEqual({ nameservers: ["192.168.77.53"], search: ["a.test", "b.test"] });
  const acks = await untilTrue(() => framesOf(capture.frames(), "ACK"), (found) => found.length > 0);
  expect(acks[0]!.payload!.length).toBeGreaterThan(1300);
  expect(acks[0]!.payload!.length).toBeLessThanOrEqual(1472);
  await net.del(container);
});

function piece(number: number, hex: string): string {
  return number.toString(16).padStart(2, "0") + (hex.length / 2).toString(16).padStart(2, "0") + hex;
}
