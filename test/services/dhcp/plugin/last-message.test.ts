/**
 * The RELEASE of a container whose link is gone leaves through the host's link, where nothing looks at it. Whatever servers
 * have said since ADD, it goes to the server that ADD found, or to everybody.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { attachV6 } from "../../../support/dhcp/attached.ts";
import { BROADCAST, captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { messages6, RELEASE, RENEW } from "../../../support/dhcp/messages6.ts";
import { OFFER4, OFFER6, value } from "../../../support/dhcp/offer.ts";
import { framesOf, openScene, type Scene, untilLeased } from "../../../support/dhcp/scene.ts";
import type { Rule } from "../../../support/dhcp/script.ts";
import { serveScript, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { dnsmasq, serve4, SERVERS4 } from "../../../support/dhcp/servers-v4.ts";
import { iscDhcpd6, serve6 } from "../../../support/dhcp/servers-v6.ts";
import { type Service, startService } from "../../../support/dhcp/service.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { linkIn } from "../../../support/wire.ts";

const ADDRESS = "192.168.77.50", OTHER_ADDRESS = "192.168.77.66", SERVER = "192.168.77.1", ROGUE = "192.168.77.6";
const ofRogue = { 54: value.addresses(ROGUE) };

// deno-lint-ignore no-explicit-any
function recordIn(service: Service): any {
  const path = join(service.directory, service.records()[0]!);
  return { path, ...JSON.parse(readFileSync(path, "utf8")) };
}

async function forgetOrigin(service: Service): Promise<void> {
  await service.stop();
  const { path, ...record } = recordIn(service);
  delete record.v4.origin;
  writeFileSync(path, JSON.stringify(record));
  await service.start();
}

/** What happens between ADD and DEL, and what the record then says. */
interface Case {
  name: string;
  forge?: (scene: Scene) => Promise<unknown> | void;
  /** Whether the record's IPv4 lease is as the case wants it. */
  until?: (v4: { lease: { server: string; address: string }; serverMac: string }, mac: string) => boolean;
  address?: string;
  isForEverybody: boolean;
}

const tell = (rule: Rule, more: Record<string, Rule> = {}) => ({ server }: Scene) =>
  server.change({ rules: { RENEW: rule, ...more } });

const cases: Case[] = [
  { name: "nothing", isForEverybody: false },
  {
    name: "a renewal",
    forge: ({ server }) => server.until((all) => all.some(({ asked }) => asked === "RENEW")),
    isForEverybody: false,
  },
  {
    name: "an acknowledgement that names another server",
    forge: tell({ options: ofRogue }),
    until: ({ lease }) => lease.server === ROGUE,
    isForEverybody: true,
  },
  {
    name: "an acknowledgement from another hardware address",
    async forge({ segment, server }) {
      server.change({ rules: { RENEW: SILENT } });
      await serveScript(await segment.anotherSite("rogue", 6), {
        address: ADDRESS,
        server: SERVER,
        leaseSeconds: 60,
      });
    },
    until: ({ serverMac }, mac) => serverMac !== mac,
    isForEverybody: true,
  },
  {
    name: "a refusal, and another address of another server",
    forge: tell({ nak: "" }, {
      DISCOVER: { options: ofRogue, address: OTHER_ADDRESS },
      REQUEST: { options: ofRogue, address: OTHER_ADDRESS },
    }),
    until: ({ lease }) => lease.address.startsWith(OTHER_ADDRESS),
    address: OTHER_ADDRESS,
    isForEverybody: true,
  },
  {
    name: "a release of Patchbay whose record does not say who gave the first lease",
    forge: ({ service }) => forgetOrigin(service),
    isForEverybody: true,
  },
];

test.concurrent.each(cases.flatMap((one) => [{ ...one, restarts: false }, { ...one, restarts: true }]))(
  "after $name, restarts: $restarts, it is for everybody: $isForEverybody",
  async ({ forge, until = () => true, address = ADDRESS, isForEverybody, restarts }) => {
    // The first renewal after 2 s, to everybody after 4 s.
    const options = { 58: value.u32(2), 59: value.u32(4) };
    await using scene = await openScene({ address: ADDRESS, leaseSeconds: 60, options });
    const { segment, machine, service } = scene;
    const container = await machine.container("c1"), net = service.network({}, { acd: "none" });
    await net.add(container);
    await untilLeased(scene, container, ADDRESS);
    const { address: own } = await linkIn(machine, container);
    const { address: serverMac } = await linkIn(machine, segment.site.namespace, "s0");
    await forge?.(scene);
    await untilTrue(() => recordIn(service).v4, (v4) => until(v4, serverMac!));
    if (restarts) await service.restart("SIGKILL");
    await machine.sh("ip link del eth0", { in: container });
    await using capture = await captureIn(segment, undefined, { link: "br0", filter: "udp dst port 67" });
    await net.del(container);
    const [release] = await untilTrue(() => framesOf(capture.frames(), "RELEASE"), ({ length }) => length > 0);
    const { from, to, source, destination } = release!;
    expect({ from, source }).toEqual({ from: own!, source: address });
    expect({ to, destination }).toEqual(
      isForEverybody ? { to: BROADCAST, destination: "255.255.255.255" } : { to: serverMac!, destination: SERVER },
    );
  },
);

test.each(SERVERS4)("$name understands one that is for everybody", async (kind) => {
  await using segment = await serverBehindBridge();
  const server = await serve4(kind, segment.site, { ...OFFER4, leaseSeconds: 1000 });
  await using service = await startService(segment);
  const container = await segment.machine.container("c1"), net = service.network();
  const { ips: [{ address }] } = await net.add(container), [ip] = address.split("/");
  await server.untilLease(ip, "active");
  await forgetOrigin(service);
  await segment.machine.sh("ip link del eth0", { in: container });
  await using capture = await captureIn(segment, undefined, { link: "br0", filter: "udp dst port 67" });
  await net.del(container);
  await server.untilLease(ip, "free");
  const [release] = await untilTrue(() => framesOf(capture.frames(), "RELEASE"), ({ length }) => length > 0);
  expect(release!.to).toBe(BROADCAST);
});

test.each([false, true])(
  "dnsmasq on the host itself, on the very bridge, gets it; for everybody: %s",
  async (forgets) => {
    await using segment = await serverBehindBridge();
    const { machine } = segment;
    // The server's command names the link s0.
    await machine.sh(`
    ip link add s0 type bridge; ip address add ${SERVER}/24 dev s0; ip link set s0 up
    mkdir -p /var/run/netns; ip netns attach host ${machine.pid}`);
    const namespace = { name: "host", netnsPath: "/var/run/netns/host" };
    const server = await serve4(dnsmasq, { segment, namespace, address: SERVER }, { ...OFFER4, leaseSeconds: 1000 });
    await using service = await startService(segment);
    const container = await machine.container("c1"), net = service.network({ bridge: "s0" });
    const { ips: [{ address }] } = await net.add(container), [ip] = address.split("/");
    await server.untilLease(ip, "active");
    if (forgets) await forgetOrigin(service);
    await machine.sh("ip link del eth0", { in: container });
    await net.del(container);
    await server.untilLease(ip, "free");
  },
);

test("IPv6: it comes from the link-local address that the link had at ADD", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const times = { preferredSeconds: 50, validSeconds: 60, renewSeconds: 2, rebindSeconds: 40 };
  const server = await serve6(iscDhcpd6, segment.site, { ...OFFER6, ...times });
  await using service = await startService(segment);
  const { container, net, ip } = await attachV6(segment, service);
  const { address: own } = await linkIn(machine, container);
  await using capture = await captureIn(segment, undefined, { link: "br0", filter: "udp dst port 547" });
  const sent = (type: number) => messages6(capture.frames()).filter(({ message }) => message.type === type);
  const [{ source } = { source: "" }] = await untilTrue(() => sent(RENEW), ({ length }) => length > 0);
  const flush = "ip -6 address flush dev eth0 scope link";
  await machine.sh(`${flush} && ip -6 address add fe80::bad/64 dev eth0 nodad`, { in: container });
  await untilTrue(() => sent(RENEW), (all) => all.some((one) => one.source === "fe80::bad"));
  await machine.sh("ip link del eth0", { in: container });
  await net.del(container);
  const [release] = await untilTrue(() => sent(RELEASE), ({ length }) => length > 0);
  const { from, to, destination } = release!;
  expect({ from, to, source: release!.source, destination }).toEqual({
    from: own!,
    to: "33:33:00:01:00:02",
    source,
    destination: "ff02::1:2",
  });
  await server.untilLease(ip, "free");
});
