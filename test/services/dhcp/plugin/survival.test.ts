/** Leases outlive the service: its end, its death at any moment, another boot. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { forge } from "../../../support/dhcp/forged6.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { PATCHBAY } from "../../../support/plugins.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { kindsOf, serveScript, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { addressesIn, type Service, startService, untilAddresses } from "../../../support/dhcp/service.ts";
import type { Container } from "../../../support/machine.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { random } from "../../../support/random.ts";

const address = "192.168.77.50";

// deno-lint-ignore no-explicit-any
type Changed = any;

/** Changes the only record while no service runs. */
function editRecord(service: Service, change: (record: Changed) => void): void {
  const path = join(service.directory, service.records()[0]!), record = JSON.parse(readFileSync(path, "utf8"));
  change(record);
  writeFileSync(path, JSON.stringify(record));
}

test.each(["SIGKILL", "SIGTERM"] as const)("%s: the next service goes on where this one was", async (signal) => {
  await using segment = await serverBehindBridge();
  const server = await serveScript(segment.site, { address, leaseSeconds: 1000 });
  const pidFile = join(segment.folder, "dhcp.pid");
  await using service = await startService(segment, { flags: ["-pidfile", pidFile] });
  // It listens first: if somebody else does, the file is that one's.
  await untilTrue(() => existsSync(pidFile), (isThere) => isThere);
  expect(readFileSync(pidFile, "utf8")).toBe(String(service.pid));
  const container = await segment.machine.container("c1"), net = service.network();
  const result = await net.add(container);
  const times = () => readFileSync(join(service.directory, service.records()[0]!), "utf8");
  const before = times();
  await service.stop(signal);
  const isClean = signal === "SIGTERM";
  expect([existsSync(service.socket), existsSync(pidFile)]).toEqual([!isClean, !isClean]);
  await service.start();
  await net.check(container);
  const { ips } = await service.network({ type: "dhcp" }).add(container);
  expect(ips).toEqual([{ address: result.ips[0].address, gateway: result.ips[0].gateway }]);
  expect(times()).toBe(before);
  expect((await addressesIn(segment, container))[0]!.address).toBe(address);
  expect(kindsOf(server.received())).toEqual(["DISCOVER", "REQUEST"]);
  await net.del(container);
  await server.until((all) => all.some(({ kind }) => kind === "RELEASE"));
});

test("a renewal that was due while no service ran is made at once, and one more service is told who has the leases", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment;
  const server = await serveScript(segment.site, { address, leaseSeconds: 1000 });
  await using service = await startService(segment);
  const container = await machine.container("c1"), net = service.network();
  await net.add(container);
  await service.stop("SIGKILL");
  editRecord(service, ({ v4 }) => {
    v4.since -= 600;
    v4.sinceWall -= 600;
  });
  await service.start();
  const received = await server.until((all) => kindsOf(all).length > 2);
  expect(kindsOf(received)).toEqual(["DISCOVER", "REQUEST", "RENEW"]);
  expect(received.at(-1)).toMatchObject({ ciaddr: address, source: address });

  const program = [PATCHBAY, "dhcp"];
  const same = await machine.run([...program, `--socketpath=${folder}/x.sock`, `--datadir=${service.directory}`]);
  expect(same).toMatchObject({
    code: 1,
    stderr: `patchbay dhcp: process ${service.pid} holds the leases in ${service.directory}\n`,
  });
  expect(existsSync(`${folder}/x.sock`)).toBe(false);
  const flags = [`--socketpath=${service.socket}`, `--datadir=${folder}/x`, `--pidfile=${folder}/x.pid`];
  const other = await machine.run([...program, ...flags]);
  expect(other.code).toBe(1);
  expect(other.stderr).toContain("Error getting listener: ");
  expect(other.stderr).toContain(`process ${service.pid} listens there\n`);
  expect(existsSync(`${folder}/x.pid`)).toBe(false);
  // A file that is no socket is somebody's.
  await machine.sh(`echo keep > ${folder}/mine`);
  expect((await machine.run([...program, `--socketpath=${folder}/mine`, `--datadir=${folder}/x`])).code).toBe(1);
  expect(readFileSync(`${folder}/mine`, "utf8")).toBe("keep\n");
  await net.check(container);
  await net.del(container);
});

test("after a boot: the address is asked for again, expired ones are a hint, and DEL gives it back", async () => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { machine, server, service } = scene;
  const net = service.network();
  let number = 0;
  const boot = async (change: (record: Changed) => void = () => {}) => {
    await service.stop();
    editRecord(service, (record) => {
      record.bootId = "another";
      change(record);
    });
    server.change({});
    const seen = server.received().length;
    await service.start();
    return () => server.received().slice(seen);
  };
  const another = async () => await machine.container(`b${++number}`);
  // The kernel takes its time to remove a namespace, whose link answers meanwhile, and no link outlives a boot.
  const lose = async (gone: Container) => {
    await machine.sh(`ip -n ${gone.name} link del eth0`);
    await machine.removeContainer(gone);
  };
  const ids = { containerId: "ctr-same" };
  let container = await another();
  await net.add(container, ids);

  const afterBoot = await boot();
  await lose(container);
  container = await another();
  expect((await net.add(container, ids)).ips[0].address).toBe(`${address}/24`);
  const [reboot] = afterBoot();
  expect(kindsOf(afterBoot())).toEqual(["REBOOT"]);
  expect(reboot!.options[50]).toBe(value.addresses(address));
  expect(reboot!.options[54]).toBeUndefined();

  const afterExpiry = await boot(({ v4 }) => v4.sinceWall -= 5000);
  await lose(container);
  container = await another();
  await net.add(container, ids);
  expect(kindsOf(afterExpiry())).toEqual(["DISCOVER", "REQUEST"]);
  expect(afterExpiry()[0]!.options[50]).toBe(value.addresses(address));

  const afterDel = await boot();
  await lose(container);
  expect((await net.call("DEL", undefined, { ...ids, ifName: "eth0" })).code).toBe(0);
  await untilTrue(afterDel, (all) => kindsOf(all).includes("RELEASE"));
  expect(afterDel()).toMatchObject([{ ciaddr: address, source: address }]);
  expect(service.records()).toEqual([]);
});

test("an ADD that is repeated: an address that is set anew gets the lease's lifetime again", async () => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { segment, service } = scene;
  const container = await segment.machine.container("c1");
  const isLimited = ([one]: { valid: number }[]) => one !== undefined && one.valid < Infinity;
  await service.network().add(container);
  await untilAddresses(segment, container, isLimited);
  await service.network({ type: "dhcp" }).add(container);
  await segment.machine.sh(`ip address change ${address}/24 dev eth0 valid_lft forever preferred_lft forever`, {
    in: container,
  });
  await untilAddresses(segment, container, isLimited);
});

test("a long lease that the server has taken back is not gone on with by the next service", async () => {
  await using segment = await serverBehindBridge();
  const server = await serveScript(segment.site, { address, leaseSeconds: 1000 });
  const forger = await forge(segment.site, { ADVERTISE: ["right"], REPLY: ["right"] });
  await using service = await startService(segment);
  const container = await segment.machine.container("c1"), net = service.network({}, { ipv6: true });
  await net.add(container);
  await service.stop();
  await forger.stop();
  await forge(segment.site, { ADVERTISE: [], REPLY: ["withdrawn"] });
  server.change({ rules: { any: SILENT, RENEW: { nak: "" } } });
  // Such leases would last for longer than any machine has been up, and are renewed at once.
  const long = 2 ** 31;
  editRecord(service, ({ v4, v6 }) => {
    Object.assign(v4.lease, { lease: long, renew: 1, rebind: long / 2 });
    Object.assign(v6.lease, { valid: long, preferred: long, renew: 1, rebind: long / 2 });
    for (const one of [v4, v6]) one.since -= 10;
  });
  await service.start();
  await untilAddresses(segment, container, ({ length }) => length === 0);
  const seen = server.received().length;
  await service.restart();
  await server.until((all) => all.length > seen);
  expect(kindsOf(server.received().slice(seen))).toEqual(["DISCOVER"]);
  const { v4, v6 } = JSON.parse(readFileSync(join(service.directory, service.records()[0]!), "utf8"));
  expect([v4.lease.lease, v6.lease.valid]).toEqual([1, 1]);
  expect((await net.call("CHECK", container)).json.msg).toContain("has ended");
  await net.del(container);
});

test("an ADD that fails after a boot takes nothing from the next one", async () => {
  await using scene = await openScene({ address, leaseSeconds: 1000 });
  const { segment, server, service } = scene;
  const container = await segment.machine.container("c1");
  const net = service.network({}, { clientId: "text:web" });
  await net.add(container);
  await service.stop();
  editRecord(service, (record) => record.bootId = "another");
  await segment.machine.sh("ip -n c1 link del eth0");
  await service.start();
  server.change({ rules: { any: SILENT } });
  const hasty = service.network({}, { clientId: "text:web", timeout: 1 });
  const other = await segment.machine.container("c2");
  expect((await hasty.call("ADD", other)).code).toBe(1);
  expect(service.records()).toHaveLength(1);
  server.change({ rules: {} });
  const seen = server.received().length;
  await net.add(other);
  expect(new Set(kindsOf(server.received().slice(seen)))).toEqual(new Set(["REBOOT"]));
  // The record of who had it before is gone.
  expect(service.records()).toEqual([expect.stringContaining("ctr-c2")]);
});

test("killed at any moment of ADD, renewal and DEL: what was answered is kept, and in the end nothing is left", async () => {
  await using scene = await openScene({
    address,
    leaseSeconds: 60,
    options: { 58: value.u32(2), 59: value.u32(50) },
  });
  const { segment, machine, server, service } = scene;
  const net = service.network({}, { acd: "none" }), container = await machine.container("c1");
  for (let turn = 0; turn < 25; turn++) {
    const add = net.call("ADD", container);
    await Bun.sleep(random() * 120);
    const isAdded = turn % 3 === 0 && (await add).code === 0;
    service.signal("SIGKILL");
    const { code } = await add;
    await service.restart("SIGKILL");
    if (code === 0) {
      const seen = server.received().length;
      await net.check(container);
      expect((await addressesIn(segment, container))[0]!.address).toBe(address);
      expect(kindsOf(server.received().slice(seen))).not.toContain("DISCOVER");
    } else expect(isAdded).toBe(false);
    const del = net.call("DEL", container);
    if (turn % 2 === 0) {
      await Bun.sleep(random() * 60);
      await service.restart("SIGKILL");
    }
    if ((await del).code !== 0) await net.del(container);
  }
  // Whatever notes there are, the last service has worked them off when it answers.
  await service.restart();
  expect(service.records()).toEqual([]);
  expect((await net.add(container)).ips[0].address).toBe(`${address}/24`);
  await net.del(container);
});
