/**
 * The plugin dhcp when its server is silent: it asks that server, then everybody, and at the end of the lease the address
 * is gone. Without any call of CNI the container has an address again when the server is back.
 */
import { expect, test } from "bun:test";
import { BROADCAST, captureIn } from "../../../support/dhcp/capture.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { framesOf, openScene, routesIn, untilLeased, untilRoutes } from "../../../support/dhcp/scene.ts";
import { type Received, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", SERVER = "192.168.77.1", EVERYBODY = "255.255.255.255";

test.concurrent("asked alone, then everybody, then the address ends; and comes back with the server", async () => {
  const options = { 58: value.u32(2), 59: value.u32(10) };
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 15, options });
  const { segment, machine, server, service } = scene;
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "udp" });
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  server.change({ rules: { any: SILENT } });
  const isAnew = ({ asked }: Received) => asked === "DISCOVER", before = server.received().filter(isAnew).length;
  await untilAddresses(segment, container, (found) => found.length === 0);
  expect(await routesIn(scene, container)).toEqual([]);
  expect((await linkIn(machine, container)).flags).toContain("UP");
  const lost = await server.until((all) => all.filter(isAnew).length >= before + 2);
  expect(lost.at(-1)!.options[50]).toBe(value.addresses(ADDRESS));

  const renewals = framesOf(capture.frames(), "REQUEST").filter(({ dhcp }) => dhcp!.clientAddress!.some(Boolean));
  const alone = renewals.filter(({ destination }) => destination === SERVER);
  const everybody = renewals.filter(({ destination }) => destination === EVERYBODY);
  expect(renewals).toEqual([...alone, ...everybody]);
  expect(alone.length).toBeGreaterThan(0);
  expect(everybody.length).toBeGreaterThan(0);
  for (const { source, dhcp } of renewals) {
    expect(source).toBe(ADDRESS);
    expect([50, 54].filter((option) => dhcp!.options.has(option))).toEqual([]);
  }
  for (const { to } of alone) expect(to).not.toBe(BROADCAST);
  for (const { to } of everybody) expect(to).toBe(BROADCAST);
  // Messages to one server have one number, messages to all have another one.
  const [first, second] = [alone, everybody].map((some) => [...new Set(some.map(({ dhcp }) => dhcp!.xid))]);
  expect([first!.length, second!.length]).toEqual([1, 1]);
  expect(first).not.toEqual(second);

  server.change({ rules: {} });
  await untilLeased(scene, container, ADDRESS);
  expect(await untilRoutes(scene, container, (all) => all.length > 0)).toEqual([`default via ${SERVER}`]);
  await untilTrue(() => ping(machine, container, SERVER), Boolean);
  await net.check(container);
  await net.del(container);
  await server.until((all) => all.at(-1)!.kind === "RELEASE");
  expect(service.records()).toEqual([]);
});

test.concurrent("the kernel ends the address also while the service is stopped", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 8 });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  expect((await untilLeased(scene, container, ADDRESS)).valid).toBeLessThanOrEqual(8);
  service.signal("SIGSTOP");
  const asked = server.received().length;
  await untilAddresses(segment, container, (found) => found.length === 0);
  expect((await linkIn(machine, container)).flags).toContain("UP");
  expect(server.received().length - asked).toBeLessThanOrEqual(1);
  service.signal("SIGCONT");
  await untilLeased(scene, container, ADDRESS);
  expect(await untilRoutes(scene, container, (all) => all.length > 0)).toEqual([`default via ${SERVER}`]);
  await net.del(container);
});

test.concurrent("a server that is not there at all, until it is started again", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 8 });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  // The kernel of its host says that the port is closed.
  await server.stop();
  await untilAddresses(segment, container, (found) => found.length === 0);
  await server.start();
  await untilLeased(scene, container, ADDRESS);
  expect(await untilRoutes(scene, container, (all) => all.length > 0)).toEqual([`default via ${SERVER}`]);
  expect(service.hasEnded).toBe(false);
  await net.del(container);
});
