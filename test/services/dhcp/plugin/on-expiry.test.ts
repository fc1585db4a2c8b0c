/** The plugin dhcp at the end of a lease that nobody renews, as `onExpiry` says. */
import { expect, test } from "bun:test";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene, routesIn, untilLeased, untilRoutes } from "../../../support/dhcp/scene.ts";
import { SILENT } from "../../../support/dhcp/scripted-server.ts";
import { addressesIn, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", OTHER = "192.168.77.90", SERVER = "192.168.77.1";
const DEFAULT_ROUTE = `default via ${SERVER}`;

test('"keep": the address stays until there is another lease', async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 8 });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network({}, { onExpiry: "keep" });
  await net.add(container);
  server.change({ rules: { any: SILENT } });
  // The lease has been over for seconds when the second one comes.
  await server.until((all) => all.filter(({ asked }) => asked === "DISCOVER").length >= 3);
  expect((await addressesIn(segment, container)).map(({ address }) => address)).toEqual([ADDRESS]);
  expect(await routesIn(scene, container)).toEqual([DEFAULT_ROUTE]);
  server.tell({ address: OTHER, leaseSeconds: 8, rules: {} });
  await untilAddresses(segment, container, (found) => found.length === 1 && found[0]!.address === OTHER);
  expect(await untilRoutes(scene, container, (all) => all.length > 0)).toEqual([DEFAULT_ROUTE]);
  await net.del(container);
});

test('"keep": a server that takes the address back is obeyed', async () => {
  const renewSoon = { 58: value.u32(2) };
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 20, options: renewSoon });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network({}, { onExpiry: "keep" });
  await net.add(container);
  server.change({ rules: { any: SILENT, RENEW: { nak: "gone" } } });
  await untilAddresses(segment, container, (found) => found.length === 0);
  await net.del(container);
});

test('"down": the link is set down, and is of use again when it is set up', async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 8 });
  const { segment, machine, server, service } = scene;
  const container = await machine.container("c1"), net = service.network({}, { onExpiry: "down" });
  await net.add(container);
  server.change({ rules: { any: SILENT } });
  await untilTrue(() => linkIn(machine, container), ({ flags }) => !flags.includes("UP"));
  expect(await addressesIn(segment, container)).toEqual([]);
  server.change({ rules: {} });
  await machine.sh("ip link set eth0 up", { in: container });
  await untilLeased(scene, container, ADDRESS);
  await net.del(container);
  expect(service.records()).toEqual([]);
});
