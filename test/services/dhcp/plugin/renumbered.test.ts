/** The plugin dhcp with Debian's servers that come back with other addresses and know nothing of what they gave. */
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { OFFER4 } from "../../../support/dhcp/offer.ts";
import { routesIn, untilLeased } from "../../../support/dhcp/scene.ts";
import { serve4, SERVERS4 } from "../../../support/dhcp/servers-v4.ts";
import { startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";

const SERVER = "192.168.77.1", OTHER_RANGE = ["192.168.77.200", "192.168.77.210"] as const;

test.concurrent.each(SERVERS4)("$name: another address and a route, and the old address is gone", async (kind) => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, times = { leaseSeconds: 20, renewSeconds: 3, rebindSeconds: 9 };
  const before = await serve4(kind, segment.site, { ...OFFER4, ...times });
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network();
  const { ips } = await net.add(container), old = ips[0].address.split("/")[0];
  await untilLeased({ segment }, container, old);
  await before.stop();
  const after = await serve4(kind, segment.site, { range: OTHER_RANGE, ...times });
  const [found] = await untilAddresses(
    segment,
    container,
    (all) => all.length === 1 && /^192\.168\.77\.2[01]\d$/.test(all[0]!.address) && all[0]!.valid < Infinity,
  );
  // The server's record says nothing of the link, which gets the routes after the address.
  await after.untilLease(found!.address, "active");
  const routes = await untilTrue(() => routesIn({ machine }, container), (found) => found.length > 0);
  expect(routes).toEqual([`default via ${SERVER}`]);
  await untilTrue(() => ping(machine, container, SERVER), Boolean);
  // The others are silent about an address of the link that they know nothing of: then it is the lease that ends.
  if (kind.name === "dnsmasq") expect(service.log()).toContain("refused (NAK)");
  await net.del(container);
  await after.untilLease(found!.address, "free");
});
