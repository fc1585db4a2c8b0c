/** DEL and GC without a service, without the namespace, without the link; and what CHECK and STATUS say. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { captureIn } from "../../../support/dhcp/capture.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { OFFER4 } from "../../../support/dhcp/offer.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { kindsOf, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { dnsmasq, serve4, udhcpd } from "../../../support/dhcp/servers-v4.ts";
import { startService } from "../../../support/dhcp/service.ts";
import { PATCHBAY } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";

const address = "192.168.77.50";
const ways = ["namespace first", "link first", "nothing first"] as const;

// Both look at where the message comes from.
test.each([dnsmasq, udhcpd])("$name: DEL while no service runs; the next one gives the lease back", async (kind) => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const server = await serve4(kind, segment.site, { ...OFFER4, leaseSeconds: 1000 });
  await using service = await startService(segment);
  const net = service.network(), all = [];
  for (const way of ways) {
    const container = await machine.container();
    const { ips: [{ address }] } = await net.add(container);
    all.push({ way, container, ip: address.split("/")[0] });
  }
  for (const { ip } of all) await server.untilLease(ip, "active");
  await service.stop("SIGKILL");
  for (const { way, container } of all) {
    if (way === "namespace first") await machine.removeContainer(container);
    if (way === "link first") await machine.sh(`ip -n ${container.name} link del eth0`);
    await net.del(container);
    // DEL succeeds as often as an engine likes, and also for what never was.
    await net.del(container);
  }
  expect((await net.call("DEL", undefined, { containerId: "never", ifName: "eth0" })).code).toBe(0);
  expect(service.records()).toHaveLength(3);
  await service.start();
  for (const { ip } of all) await server.untilLease(ip, "free");
  await untilTrue(() => service.records().length, (count) => count === 0);
});

test.each(ways)("DEL with the service, %s", async (way) => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const server = await serve4(dnsmasq, segment.site);
  await using service = await startService(segment);
  const net = service.network(), container = await machine.container("c1");
  const { ips: [{ address }] } = await net.add(container), [ip] = address.split("/");
  await server.untilLease(ip, "active");
  if (way === "namespace first") await machine.removeContainer(container);
  if (way === "link first") await machine.sh("ip -n c1 link del eth0");
  await net.del(container);
  await server.untilLease(ip, "free");
  expect(service.records()).toEqual([]);
});

test("GC gives back what is not listed, with the service and without, wherever the journal is", async () => {
  await using segment = await serverBehindBridge();
  const server = await serve4(dnsmasq, segment.site);
  await using service = await startService(segment);
  const { machine } = segment;
  // A client of the service need not know where it keeps the leases.
  const net = service.network(), unaware = service.network({}, { dataDir: join(segment.folder, "elsewhere") });
  const other = service.network({ name: "other" });
  const containers = await Promise.all([1, 2, 3].map(async (number) => await machine.container(`c${number}`)));
  const ips: string[] = [];
  for (const container of containers) {
    ips.push((await net.add(container)).ips[0].address.split("/")[0]);
    await other.add(container, { ifName: "eth1" });
  }
  const [first, second, third] = containers as [typeof containers[0], typeof containers[0], typeof containers[0]];
  await unaware.gc([first, second]);
  await server.untilLease(ips[2]!, "free");
  await net.check(first);
  await net.check(second);
  await other.check(third, { ifName: "eth1" });
  await service.stop();
  await net.gc([first]);
  await service.start();
  await server.untilLease(ips[1]!, "free");
  await untilTrue(() => service.records().length, (count) => count === 4);
  expect((await server.leases()).find((lease) => lease.address === ips[0])!.state).toBe("active");
  await net.check(first);
});

test("a path that is no directory keeps no container from being deleted", async () => {
  await using scene = await openScene({ address });
  const { segment, service } = scene;
  const container = await segment.machine.container("c1"), net = service.network();
  await net.add(container);
  await service.stop();
  const file = join(segment.folder, "a-file");
  writeFileSync(file, "");
  const lost = service.network({}, { dataDir: file });
  const answer = await lost.call("DEL", container);
  expect(answer).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("will not know that a container is gone"),
  });
});

test("CHECK sends nothing, and fails for who has no lease or no service", async () => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { segment, server, service } = scene;
  const container = await segment.machine.container("c1"), net = service.network();
  await net.add(container);
  await using capture = await captureIn(segment, undefined, { link: "br0", filter: "udp" });
  await net.check(container);
  const ipam = service.network({ type: "dhcp" });
  const unknown = await ipam.call("CHECK", container, { containerId: "other" });
  expect(unknown).toMatchObject({ code: 1 });
  expect(unknown.json.msg).toContain("no lease is held for other/net/eth0");
  // A message that is sent afterwards is the first that anybody sees.
  await net.del(container);
  const received = await server.until((all) => all.some(({ kind }) => kind === "RELEASE"));
  expect(kindsOf(received)).toEqual(["DISCOVER", "REQUEST", "RELEASE"]);
  const frames = await untilTrue(() => capture.frames(), (all) => all.some(({ dhcp }) => dhcp !== undefined));
  expect(frames.filter(({ dhcp }) => dhcp !== undefined)).toHaveLength(1);
  await service.stop();
  const down = await ipam.call("CHECK", container);
  expect(down.code).toBe(1);
  expect(down.json.msg).toContain(`error dialing DHCP daemon: dial unix ${service.socket}`);
});

test("STATUS: no service, no service for leases that are held, a server that is silent, and all is well", async () => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { segment, server, service } = scene;
  const net = service.network({}, { timeout: 1 });
  const status = async () => (await net.call("STATUS", undefined)).json;
  const container = await segment.machine.container("c1");
  expect(await status()).toBeUndefined();
  server.change({ rules: { any: SILENT } });
  expect((await net.call("ADD", container)).code).toBe(1);
  expect(await status()).toMatchObject({ code: 50, msg: expect.stringContaining("no server has answered") });
  server.change({ rules: {} });
  await net.add(container);
  expect(await status()).toBeUndefined();
  await service.stop();
  expect(await status()).toMatchObject({ code: 51, details: expect.stringContaining("nobody renews the leases") });
  await service.start();
  await net.del(container);
  await service.stop();
  expect(await status()).toMatchObject({ code: 50, details: expect.stringContaining("cni-dhcp.service") });
});

test("STATUS after an outage succeeds by itself, though no ADD has: engines that go by it make none", async () => {
  await using segment = await serverBehindBridge();
  const server = await serve4(dnsmasq, segment.site);
  await using service = await startService(segment, { flags: ["-resendtimeout", "3s"] });
  const net = service.network({}, { timeout: 1 }), status = () => net.call("STATUS", undefined);
  const list = {
    cniVersion: "1.1.0",
    name: "net",
    plugins: [{ type: "bridge", bridge: "br0", ipam: service.ipam() }],
  };
  await segment.machine.sh(
    `mkdir /run/configs; cat >/run/configs/net.conflist <<'end'\n${JSON.stringify(list)}\nend`,
  );
  const plan = () => segment.machine.run([PATCHBAY, "plan", "net", "--config-dir", "/run/configs"]);
  const [first, second] = [await segment.machine.container("c1"), await segment.machine.container("c2")];
  await net.add(first);
  await server.stop();
  /** On a busy machine it may be forgotten before it is asked for. */
  const afterFailedAdd = async <Told>(ask: () => Promise<Told>, isTold: (told: Told) => boolean) =>
    await untilTrue(async () => {
      expect((await net.call("ADD", second)).code).toBe(1);
      return await ask();
    }, isTold);
  const told = await afterFailedAdd(status, ({ code }) => code !== 0);
  expect(told.json.details).toMatch(/; STATUS succeeds again in [123] s unless another ADD fails$/);
  // It says nothing about the next ADD.
  const planned = await afterFailedAdd(plan, ({ stderr }) => stderr.includes("the last ADD got no address"));
  expect(planned).toMatchObject({ code: 0, stderr: expect.not.stringContaining("would fail") });
  await untilTrue(status, ({ code }) => code === 0);
  await server.start();
  await untilTrue(() => net.call("ADD", second), ({ code }) => code === 0);
  expect((await status()).code).toBe(0);
});
