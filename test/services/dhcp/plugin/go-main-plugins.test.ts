/** Debian's Go main plugins with our dhcp: they give the address to the link, without a lifetime. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { type Segment, serverBehindBridge, serverBehindMaster } from "../../../support/dhcp/link.ts";
import { OFFER4, OFFER6 } from "../../../support/dhcp/offer.ts";
import { iscDhcpd, serve4 } from "../../../support/dhcp/servers-v4.ts";
import { kea6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { type AddressOfLink, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import { network } from "../../../support/network.ts";
import { GO_PLUGINS, patchbayPlugins } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { ping } from "../../../support/traffic.ts";
import { linkIn } from "../../../support/wire.ts";

const LONG4 = { ...OFFER4, leaseSeconds: 1000 };
const LONG6 = { ...OFFER6, preferredSeconds: 600, validSeconds: 1000, renewSeconds: 4 };
const areLimited = (all: AddressOfLink[]) => all.length === 2 && all.every(({ valid }) => valid < Infinity);

const subjects: [open: () => Promise<Segment>, conf: Record<string, unknown> & { type: string }][] = [
  [serverBehindBridge, { type: "bridge", bridge: "br0" }],
  [serverBehindMaster, { type: "macvlan", master: "m0" }],
];

test.each(subjects)("%p %j: lifetimes of both families, renewed, and given back", async (open, conf) => {
  if (!existsSync(`${GO_PLUGINS}/${conf.type}`)) throw new Error(`${GO_PLUGINS} is not there`);
  await using segment = await open();
  const { machine, site } = segment, server4 = await serve4(iscDhcpd, site, LONG4);
  const server6 = await serve6(kea6, site, LONG6);
  await using service = await startService(segment);
  const env = { CNI_PATH: `${patchbayPlugins()}:${GO_PLUGINS}` };
  const whole = { cniVersion: "1.0.0", ...conf, ipam: service.ipam({ ipv6: true }) };
  const net = network(machine, whole, GO_PLUGINS, { env });
  const container = await machine.container("c1"), { ips } = await net.add(container);
  const [v4, v6] = ips.map((one: { address: string }) => one.address.split("/")[0]);
  const found = await untilAddresses(segment, container, areLimited);
  expect(found.map(({ address, bits }) => `${address}/${bits}`).sort()).toEqual([`${v4}/24`, `${v6}/128`].sort());
  for (const { valid, preferred } of found) {
    expect(valid).toBeLessThanOrEqual(1000);
    expect(valid).toBeGreaterThan(700);
    expect(preferred).toBeLessThanOrEqual(valid);
  }
  expect(await ping(machine, container, "192.168.77.1")).toBe(true);
  await server4.untilLease(v4, "active");
  const { ends } = await server6.untilLease(v6, "active");
  await net.check(container);
  await untilTrue(() => server6.leases(), (all) => all.some((one) => one.address === v6 && one.ends > ends));
  await untilAddresses(segment, container, areLimited);
  await net.del(container);
  expect(await linkIn(machine, container)).toBeUndefined();
  await server4.untilLease(v4, "free");
  await server6.untilLease(v6, "free");
  expect(service.records()).toEqual([]);
});
