/** The plugin dhcp on a link that loses packets: ADD succeeds, or says what it waited for and leaves nothing. */
import { expect, test } from "bun:test";
import type { Container } from "../../../support/machine.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene, type Scene } from "../../../support/dhcp/scene.ts";
import { SILENT } from "../../../support/dhcp/scripted-server.ts";
import { untilIdle } from "../../../support/dhcp/service.ts";
import type { Rule, Script } from "../../../support/dhcp/script.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50";
const LATER: Rule[] = [SILENT, {}];

const lostOnce: [what: string, rules: Script["rules"], dropped: string | undefined][] = [
  ["OFFER", { DISCOVER: LATER }, undefined],
  ["ACK", { REQUEST: LATER }, undefined],
  // Message types 1 and 3, which the server's kernel drops before the server.
  ["DISCOVER", {}, "01"],
  ["REQUEST", {}, "03"],
];

test.concurrent.each(lostOnce)("%s lost once", async (_, rules, dropped) => {
  await using scene = await openScene({ address: ADDRESS, rules });
  const { machine, server, service } = scene;
  if (dropped !== undefined) await dropFirst(scene, dropped);
  const container = await machine.container("c1"), net = service.network();
  const { ips } = await net.add(container);
  expect(ips[0].address).toBe(`${ADDRESS}/24`);
  const heard = server.received().map(({ asked }) => asked);
  if (dropped === undefined) expect(heard.length).toBeGreaterThanOrEqual(3);
  else expect(await machine.sh("ip netns exec server nft list chain ip lossy in")).toMatch(/counter packets 1 /);
  expect(new Set(heard)).toEqual(new Set(["DISCOVER", "REQUEST"]));
  // Repeated messages are of the same exchange.
  expect(new Set(server.received().map(({ xid }) => xid)).size).toBe(1);
  await net.del(container);
});

/** The payload's bytes 240 to 242 are option 53, which stands first. The limit is for those that are dropped. */
async function dropFirst({ machine }: Scene, type: string): Promise<void> {
  await machine.sh(`ip netns exec server nft -f - <<'END'
table ip lossy {
  chain in {
    type filter hook prerouting priority raw
    udp dport 67 @th,1984,24 0x3501${type} limit rate 1/day burst 1 packets counter drop
  }
}
END`);
}

test.concurrent.each(
  [
    ["no OFFER", { DISCOVER: SILENT }, ["no server has answered DISCOVER"], false],
    [
      "no ACK",
      { REQUEST: SILENT },
      ["server 192.168.77.1 offered 192.168.77.50, but has not answered REQUEST"],
      true,
    ],
    ["a NAK", { REQUEST: { nak: "not you\n" } }, ["server 192.168.77.1 refused (NAK): not you"], false],
    ["no mask", { any: { options: { 1: null } } }, ["DHCP option Subnet Mask not found in DHCPACK"], false],
  ] as [string, Script["rules"], string[], boolean][],
)("%s at all: an error that says so, and nothing is left", async (_, rules, texts, isReleased) => {
  await using scene = await openScene({ address: ADDRESS, rules });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network({}, { timeout: 4 });
  const before = await linksOf(scene, container);
  const { code, json } = await net.call("ADD", container);
  expect(code).toBe(1);
  expect(json.code).toBe(999);
  for (const text of ["no more tries", ...texts]) expect(json.msg).toContain(text);
  expect(json.details).toContain("waited 4 s");
  expect(service.records()).toEqual([]);
  expect(await linkIn(machine, container)).toBeUndefined();
  expect(await linksOf(scene, container)).toEqual(before);
  if (isReleased) {
    const received = await server.until((all) => all.some(({ kind }) => kind === "RELEASE"));
    expect(received.at(-1)).toMatchObject({ kind: "RELEASE", ciaddr: ADDRESS, source: ADDRESS });
    expect(received.at(-1)!.options[54]).toBe(value.addresses("192.168.77.1"));
    expect(received.at(-1)!.options[61]).toBe(received[0]!.options[61]!);
  }
  // The service is sound, and so is the next ADD.
  server.change({ rules: {} });
  const patient = service.network();
  await patient.add(container);
  await patient.del(container);
});

test("a renewal without an answer: until the next one, nothing of the container is open", async () => {
  const options = { 58: value.u32(4), 59: value.u32(900) };
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 1000, options, rules: { RENEW: SILENT } });
  const { machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilIdle(service);
  await server.until((all) => all.some(({ asked }) => asked === "RENEW"));
  await untilIdle(service);
  await net.check(container);
  await net.del(container);
});

async function linksOf({ machine }: Scene, container: Container): Promise<string[]> {
  const names = async (where?: Container) =>
    JSON.parse(await machine.sh("ip -j link", where && { in: where })).map(({ ifname }: { ifname: string }) =>
      ifname
    );
  return [...await names(container), ...await names()];
}
