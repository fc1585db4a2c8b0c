/** ADD twice, at once, with DEL in between, without a caller, and two containers that say they are the same. */
import { join } from "node:path";
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { OFFER4, value } from "../../../support/dhcp/offer.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { kindsOf, SILENT } from "../../../support/dhcp/scripted-server.ts";
import { dnsmasq, serve4 } from "../../../support/dhcp/servers-v4.ts";
import { startService } from "../../../support/dhcp/service.ts";
import { environmentOf, patchbayPlugins } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";
import { random } from "../../../support/random.ts";

const address = "192.168.77.50";

test("ADD twice for one id: one exchange, one answer; also for two at once", async () => {
  await using scene = await openScene({ address, rules: { DISCOVER: { delayMs: 200 } } });
  const { segment, server, service } = scene;
  const container = await segment.plug("c1"), net = service.network({ type: "dhcp" });
  const [one, two] = await Promise.all([net.add(container), net.add(container)]);
  expect(one.ips).toMatchObject([{ address: `${address}/24` }]);
  expect([two, await net.add(container)]).toEqual([one, one]);
  await net.del(container);
  const received = await server.until((all) => all.some(({ kind }) => kind === "RELEASE"));
  expect(kindsOf(received)).toEqual(["DISCOVER", "REQUEST", "RELEASE"]);
});

test("ADD and DEL at once, in any order: nobody holds or renews what nobody has", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment;
  const server = await serve4(dnsmasq, segment.site, { ...OFFER4, renewSeconds: 2, rebindSeconds: 60 });
  await using service = await startService(segment);
  const net = service.network({ type: "dhcp" }, { acd: "none" });
  const containers = await Promise.all([1, 2, 3].map(async (n) => await segment.plug(`c${n}`)));
  for (let turn = 0; turn < 10; turn++) {
    await Promise.all(containers.map(async (container) => {
      const add = net.call("ADD", container);
      await Bun.sleep(random() * 100);
      await net.del(container);
      // An ADD that came after the DEL has an owner, who deletes it again.
      if ((await add).code === 0) await net.del(container);
    }));
  }
  expect(service.records()).toEqual([]);
  await untilTrue(() => server.leases(), (leases) => leases.every(({ state }) => state === "free"));
  expect((await machine.run(["ls", service.directory])).stdout).toBe("lock\n");
});

test("a caller that is killed: the service gives up, and gives back what came too late", async () => {
  await using scene = await openScene({ address, rules: { REQUEST: SILENT } });
  const { segment, machine, server, service } = scene;
  const container = await segment.plug("c1");
  const conf = { cniVersion: "1.1.0", name: "net", type: "dhcp", ipam: service.ipam() };
  const call = { plugin: "dhcp", command: "ADD", container, conf };
  const variables = Object.entries(environmentOf(patchbayPlugins(), call)).map(([key, text]) => `${key}=${text}`);
  const caller = machine.start(["env", ...variables, join(patchbayPlugins(), "dhcp")]);
  caller.stdin.write(JSON.stringify(conf));
  await caller.stdin.end();
  await server.until((all) => kindsOf(all).includes("REQUEST"));
  caller.kill("SIGKILL");
  await caller.exited;
  const received = await server.until((all) => kindsOf(all).includes("RELEASE"));
  expect(received.at(-1)).toMatchObject({ ciaddr: address });
  expect(service.records()).toEqual([]);
  const report = await service.network({ type: "dhcp" }).call("CHECK", container);
  expect(report.json.msg).toContain("no lease is held for ctr-c1/net/eth0");
  expect(service.descriptors().filter((one) => one.startsWith("net:")).length).toBeLessThanOrEqual(1);
});

test("the same container in another namespace asks whether its address is still its own", async () => {
  await using scene = await openScene({ address });
  const { machine, server, service } = scene;
  // The kernel takes its time to remove the first namespace, whose link answers meanwhile.
  const net = service.network({}, { acd: "none" }), first = await machine.container("c1");
  await net.add(first);
  const second = await machine.container("c2"), ids = { containerId: "ctr-c1" };
  await machine.removeContainer(first);
  expect((await net.add(second, ids)).ips[0].address).toBe(`${address}/24`);
  const received = server.received();
  expect(kindsOf(received)).toEqual(["DISCOVER", "REQUEST", "REBOOT"]);
  expect(received.at(-1)!.options[50]).toBe(value.addresses(address));
  expect(service.records()).toHaveLength(1);
  await net.del(second, ids);
  await server.until((all) => kindsOf(all).includes("RELEASE"));
  expect(service.records()).toEqual([]);
});

test("two containers of one client id: the second is refused, until the first is gone", async () => {
  await using scene = await openScene({ address });
  const { machine, server, service } = scene;
  // The server gives one client one address, on whichever network of ours it is.
  const ipam = { clientId: "text:web", acd: "none" }, net = service.network({}, ipam);
  const first = await machine.container("c1"), second = await machine.container("c2");
  await net.add(first);
  const refused = await net.call("ADD", second);
  expect(refused.code).toBe(1);
  expect(refused.json.msg).toContain("ctr-c1/net/eth0 has the same client id");
  // On another network it is another client.
  await service.network({ name: "other" }, ipam).add(first, { ifName: "eth1" });
  await net.del(first);
  expect((await net.add(second)).ips).toMatchObject([{ address: `${address}/24` }]);
  expect(server.received()[0]!.options[61]).toBe(value.text("web"));
});
