/** The plugin dhcp with servers whose times would make it ask again and again: a packet a second at most. */
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { openScene, untilLeased } from "../../../support/dhcp/scene.ts";
import type { Script } from "../../../support/dhcp/script.ts";
import { untilTrue } from "../../../support/until-true.ts";

const ADDRESS = "192.168.77.50";
const { u32 } = value;

test.concurrent.each(
  [
    ["T1 and T2 of 0", { 58: u32(0), 59: u32(0) }, 6, {}],
    ["T1 and T2 of 1 in a short lease", { 58: u32(1), 59: u32(2) }, 3, {}],
    ["a lease of 1", {}, 1, {}],
    ["a lease of 2", {}, 2, {}],
    ["a lease that is given and refused in turn", { 58: u32(1), 59: u32(19) }, 20, { RENEW: { nak: "no" } }],
  ] as [string, Record<number, string>, number, Script["rules"]][],
)("%s makes no storm", async (_, options, leaseSeconds, rules) => {
  await using scene = await openScene({ address: ADDRESS, options, leaseSeconds, rules });
  const { segment, machine, service } = scene;
  const container = await machine.container("c1");
  await using capture = await captureIn(segment, segment.site.namespace, { filter: "udp dst port 67" });
  // The first one may be over before the plugin has set the address.
  await service.network().call("ADD", container);
  const start = Date.now();
  const frames = await untilTrue(
    () => capture.frames().filter(({ time }) => time >= start),
    ({ length }) => length >= 9,
  );
  // What begins or ends within the first or the last second counts, too.
  expect(frames.length).toBeLessThanOrEqual((frames.at(-1)!.time - frames[0]!.time) / 1000 + 3);
});

test("a lease of 3 seconds ends with the container", async () => {
  await using scene = await openScene({ address: ADDRESS, leaseSeconds: 3 });
  const { machine, service } = scene;
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await untilLeased(scene, container, ADDRESS);
  await net.del(container);
  expect(service.records()).toEqual([]);
});
