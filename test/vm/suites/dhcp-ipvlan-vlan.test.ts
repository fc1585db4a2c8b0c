/** The plugin dhcp on links of ipvlan and vlan, with dnsmasq: few tests, because everything is slow in the machine. */
import { expect, test } from "bun:test";
import { captureIn } from "../../support/dhcp/capture.ts";
import { serverBehindMaster } from "../../support/dhcp/link.ts";
import { kindOf } from "../../support/dhcp/message-name.ts";
import { OFFER4 } from "../../support/dhcp/offer.ts";
import { dnsmasq, serve4 } from "../../support/dhcp/servers-v4.ts";
import { startService, untilAddresses } from "../../support/dhcp/service.ts";
import { lacks } from "../../support/kernel-features.ts";
import { untilTrue } from "../../support/until-true.ts";
import { ping } from "../../support/traffic.ts";

const LONG = { ...OFFER4, leaseSeconds: 3600 }, LIMIT_MS = 600_000;

test.skipIf(lacks("ipvlan links"))(
  "ipvlan: two containers with one MAC address have leases of their own",
  async () => {
    await using segment = await serverBehindMaster();
    const { machine } = segment, server = await serve4(dnsmasq, segment.site, LONG);
    await using service = await startService(segment);
    await using capture = await captureIn(segment, segment.site.namespace);
    const net = service.network({ type: "ipvlan" }), ips: string[] = [];
    const containers = [await machine.container("c1"), await machine.container("c2")];
    for (const container of containers) {
      const { ips: [{ address }] } = await net.add(container), [ip] = address.split("/");
      ips.push(ip);
      await server.untilLease(ip, "active");
      await untilAddresses(segment, container, ([one]) => one?.address === ip && one!.valid < Infinity);
      expect(await ping(machine, container, "192.168.77.1")).toBe(true);
      await net.check(container);
    }
    expect(new Set(ips).size).toBe(2);
    const asked = await untilTrue(
      () => capture.frames().filter(({ dhcp }) => kindOf(dhcp) === "DISCOVER"),
      ({ length }) => length >= 2,
    );
    // What is sent to the address that is offered reaches no link of ipvlan.
    for (const { dhcp } of asked) expect(dhcp!.broadcast).toBe(true);
    for (const container of containers) await net.del(container);
    for (const ip of ips) await server.untilLease(ip, "free");
  },
  LIMIT_MS,
);

test.skipIf(lacks("VLAN links"))("vlan: the lease is of the tagged network", async () => {
  await using segment = await serverBehindMaster();
  const { machine, site } = segment;
  await machine.sh(`
    ip -n server link set s0 down
    ip -n server link set s0 name trunk
    ip -n server link set trunk up
    ip -n server address flush dev trunk
    ip -n server link add link trunk name s0 type vlan id 7
    ip -n server link set s0 up
    ip -n server address add 192.168.77.1/24 dev s0`);
  const server = await serve4(dnsmasq, site, LONG);
  await using service = await startService(segment);
  const net = service.network({ type: "vlan", master: "m0", vlanId: 7 });
  const container = await machine.container("c1");
  const { ips: [{ address }] } = await net.add(container), [ip] = address.split("/");
  await server.untilLease(ip, "active");
  await untilAddresses(segment, container, ([one]) => one?.address === ip && one!.valid < Infinity);
  expect(await ping(machine, container, "192.168.77.1")).toBe(true);
  await net.check(container);
  await net.del(container);
  await server.untilLease(ip, "free");
  const other = service.network({ type: "vlan", master: "m0", vlanId: 8, name: "other" }, { timeout: 3 });
  const { json } = await other.call("ADD", await machine.container("c2"));
  expect(json.msg).toContain("no more tries");
}, LIMIT_MS);
