/** The plugin dhcp when another host has the address that the server gives (RFC 5227). */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { OFFER4, value } from "../../../support/dhcp/offer.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { iscDhcpd, serve4 } from "../../../support/dhcp/servers-v4.ts";
import { addressesIn, startService } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", OTHER = "192.168.77.60", SERVER = "192.168.77.1", ARP = 0x0806;

test("a conflict: declined, and ten seconds later another address", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const { segment, machine, server, service } = scene;
  await segment.plug("owner");
  await machine.sh(`ip -n owner address add ${ADDRESS}/24 dev eth0`);
  const container = await machine.container("c1"), net = service.network({}, { acd: "full" });
  const adding = net.add(container);
  const declined = await server.until((all) => all.some(({ kind }) => kind === "DECLINE"));
  server.tell({ address: OTHER });
  const decline = declined.find(({ kind }) => kind === "DECLINE")!, { mac } = decline;
  expect(decline).toMatchObject({ source: "0.0.0.0", ciaddr: "0.0.0.0" });
  expect(decline.options).toMatchObject({ 50: value.addresses(ADDRESS), 54: value.addresses(SERVER) });
  expect(decline.options[61]).toBe(declined[0]!.options[61]!);
  expect(Object.keys(decline.options).sort()).toEqual(["50", "53", "54", "61"]);
  const { ips } = await adding;
  expect(ips[0].address).toBe(`${OTHER}/24`);
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([OTHER]);
  expect((await linkIn(machine, container)).address).toBe(mac);
  const again = server.received().find(({ kind, time }) => kind === "DISCOVER" && time > decline.time)!;
  expect(again.options[50]).toBeUndefined();
  expect(service.log()).toContain(`another host has ${ADDRESS}, which server ${SERVER} gave`);
  await net.del(container);
});

test("conflicts until the time is over: the error says who gave what", async () => {
  await using scene = await openScene({ address: ADDRESS });
  const { segment, machine, server, service } = scene;
  await segment.plug("owner");
  await machine.sh(`ip -n owner address add ${ADDRESS}/24 dev eth0`);
  const container = await machine.container("c1"), net = service.network({}, { acd: "full", timeout: 5 });
  const { code, json } = await net.call("ADD", container);
  expect([code, json.code]).toEqual([1, 999]);
  expect(json.msg).toContain(`another host has ${ADDRESS}, which server ${SERVER} gave`);
  // A declined address is not given back once more.
  expect(server.received().some(({ kind }) => kind === "RELEASE")).toBe(false);
  expect(service.records()).toEqual([]);
});

test.concurrent.each(
  [["none", 0], ["fast", 1], ["full", 3]] as const,
)("acd %s: %d probes, from nobody's address", async (acd, count) => {
  await using scene = await openScene({ address: ADDRESS });
  const { segment, machine, server, service } = scene;
  await using capture = await captureIn(segment, segment.site.namespace, {
    filter: `arp and ether src not ${(await linkIn(machine, segment.site.namespace, "s0")).address}`,
  });
  const container = await machine.container("c1"), net = service.network({}, { acd });
  await net.add(container);
  // Whatever was before it is in the capture with it.
  await machine.sh(`ip netns exec c1 ping -c 1 -W 5 ${SERVER}`);
  const { address: mac } = await linkIn(machine, container);
  const frames = await untilTrue(
    () => capture.frames(),
    (all) => all.some(({ destination }) => destination === SERVER),
  );
  const probes = frames.filter(({ type, from, source, destination }) =>
    type === ARP && from === mac && source === "0.0.0.0" && destination === ADDRESS
  );
  expect(probes.length).toBe(count);
  expect(probes.every(({ arp }) => arp!.operation === 1)).toBe(true);
  await net.del(container);
  await server.until((all) => all.at(-1)!.kind === "RELEASE");
});

test("ISC dhcpd gives a declined address to nobody", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const server = await serve4(iscDhcpd, segment.site, OFFER4);
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network({}, { acd: "full" });
  const first = (await net.add(container)).ips[0].address.split("/")[0];
  await net.del(container);
  await server.untilLease(first, "free");
  await segment.plug("owner");
  await machine.sh(`ip -n owner address add ${first}/24 dev eth0`);
  // It would be given the same one again.
  const { ips } = await net.add(container);
  expect(ips[0].address).not.toBe(`${first}/24`);
  await server.untilLease(first, "declined");
  await net.del(container);
});
