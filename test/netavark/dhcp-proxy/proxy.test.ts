/** `netavark dhcp-proxy` on a real socket, with another program's HTTP/2: what containers, servers and netavark see of it. */
import { existsSync, statSync } from "node:fs";
import { expect, test } from "bun:test";
import { serverBehindBridge } from "../../support/dhcp/link.ts";
import { value } from "../../support/dhcp/offer.ts";
import { routesIn } from "../../support/dhcp/scene.ts";
import { kindsOf, serveScript, SILENT } from "../../support/dhcp/scripted-server.ts";
import { addressesIn } from "../../support/dhcp/service.ts";
import { netavark, netavarkProgram } from "../../support/netavark/netavark.ts";
import { DhcpProxy, startProxy } from "../../support/netavark/dhcp-proxy.ts";
import { untilTrue } from "../../support/resident-status.ts";

const address = "192.168.77.50", moved = "192.168.77.60";
const domain = { 15: Buffer.from("home.example").toString("hex") };

async function open(script = {}, options?: readonly string[]) {
  const segment = await serverBehindBridge();
  const server = await serveScript(segment.site, { address, leaseSeconds: 600, options: domain, ...script });
  const proxy = await startProxy(segment, options);
  return { segment, server, proxy, [Symbol.asyncDispose]: () => segment[Symbol.asyncDispose]() };
}

test("Setup gives the container the lease, and Teardown gives it back", async () => {
  await using scene = await open();
  const { proxy, segment, server } = scene,
    container = await segment.plug("c1"),
    config = await proxy.config(container);
  const { status, message, lease } = await proxy.call("Setup", config);
  expect([status, message]).toEqual([0, ""]);
  expect(lease).toMatchObject({
    3: [600],
    5: ["home.example"],
    6: [config[3]],
    11: ["192.168.77.1"],
    12: [address],
    16: ["192.168.77.1"],
    17: ["255.255.255.0"],
    20: ["192.168.77.1"],
    22: ["larder"],
  });
  const [found] = await addressesIn(segment, container);
  expect(found!.address).toBe(address);
  expect(found!.valid).toBeLessThanOrEqual(600);
  expect(await routesIn(segment, container)).toEqual(["default via 192.168.77.1"]);
  expect(proxy.leases()).toEqual({
    [String(config[3])]: [expect.objectContaining({ yiaddr: address, lease_time: 600 })],
  });
  const [discover] = server.received();
  expect(discover!.options[12]).toBe(Buffer.from("larder").toString("hex"));
  expect(discover!.options[61]).toBe(`00${Buffer.from("id-of-c1").toString("hex")}`);

  // A repeated one gets the same, and nobody is asked.
  expect(await proxy.call("Setup", config)).toEqual({ status, message, lease });
  expect(kindsOf(server.received())).toEqual(["DISCOVER", "REQUEST"]);
  expect(await proxy.call("Teardown", config)).toEqual({ status, message, lease });
  await server.until((all) => kindsOf(all).includes("RELEASE"));
  expect([proxy.leases(), proxy.records()]).toEqual([{}, []]);
  const { lease: none = {}, ...again } = await proxy.call("Teardown", config);
  expect([again, none]).toEqual([{ status: 0, message: "" }, {}]);
});

test("a renewal that moves the container: address, route, file and log", async () => {
  const short = { options: { ...domain, 58: value.u32(2), 59: value.u32(500) } };
  await using scene = await open(short);
  const { proxy, segment, server } = scene,
    container = await segment.plug("c1"),
    config = await proxy.config(container);
  expect((await proxy.call("Setup", { ...config, 4: "its.own.example" })).lease![5]).toEqual(["its.own.example"]);
  server.change({ address: moved, rules: { RENEW: { nak: "moved" } } });
  await untilTrue(() => addressesIn(segment, container), ([one]) => one?.address === moved);
  await untilTrue(() => proxy.running.log(), (log) => log.includes(`ip or gateway for mac ${config[3]} changed`));
  expect(await routesIn(segment, container)).toEqual(["default via 192.168.77.1"]);
  expect(proxy.leases()![String(config[3])]).toMatchObject([{ yiaddr: moved, domain_name: "its.own.example" }]);
});

test.each(["SIGKILL", "SIGTERM"] as const)("%s: the next proxy holds the leases", async (signal) => {
  await using scene = await open({ options: { 58: value.u32(4), 59: value.u32(500) } });
  const { proxy, segment, server } = scene,
    container = await segment.plug("c1"),
    config = await proxy.config(container);
  const { lease } = await proxy.call("Setup", config);
  const before = proxy.leases();
  expect(await proxy.stop(signal)).toBe(signal === "SIGTERM" ? 0 : null);
  expect(existsSync(proxy.socket)).toBe(signal === "SIGKILL");
  await proxy.start();
  expect(proxy.leases()).toEqual(before);
  await server.until((all) => kindsOf(all).includes("RENEW"));
  expect(await proxy.call("Teardown", config)).toMatchObject({ status: 0, lease: { 12: lease![12] } });
  await server.until((all) => kindsOf(all).includes("RELEASE"));
  expect([proxy.leases(), proxy.records()]).toEqual([{}, []]);
});

test("what is wrong is refused by name, and no server hears of it", async () => {
  await using scene = await open();
  const { proxy, segment, server } = scene,
    container = await segment.plug("c1"),
    good = await proxy.config(container);
  const INVALID = 3;
  for (
    const [change, text] of [
      [{ 1: "" }, 'host interface "": Netlink error: No such device (os error 19)'],
      [{ 1: "br9" }, 'host interface "br9": Netlink error: No such device (os error 19)'],
      [{ 2: "" }, 'container interface "": Netlink error: No such device (os error 19)'],
      [{ 2: "eth9" }, 'container interface "eth9": Netlink error: No such device (os error 19)'],
      [{ 3: "" }, "unable to parse mac address : cannot parse integer from empty string"],
      [{ 3: "123" }, "unable to parse mac address 123: invalid digit found in string"],
      [{ 3: "02:00:00:00:00:09" }, "eth0 has the hardware address"],
      [{ 6: 1 }, "ipv6 not yet supported"],
      [{ 6: 7 }, "invalid protocol version"],
      [{ 7: "/run/netns/none" }, 'ns_path "/run/netns/none"'],
      [{ 8: "a/../b" }, 'container id "a/../b"'],
      [{ 5: "x".repeat(256) }, "longer than 255 bytes"],
    ] as const
  ) {
    const { status, message } = await proxy.call("Setup", { ...good, ...change });
    expect([change, status]).toEqual([change, INVALID]);
    expect(message).toContain(text);
  }
  expect([server.received(), proxy.leases(), proxy.records()]).toEqual([[], {}, []]);
  expect(await addressesIn(segment, container)).toEqual([]);
});

test("no server answers, or the caller goes away: no lease is held", async () => {
  await using scene = await open({ rules: { any: SILENT } }, ["-a", "0", "-t", "2"]);
  const { proxy, segment, server } = scene,
    container = await segment.plug("c1"),
    config = await proxy.config(container);
  const ABORTED = 10;
  expect(await proxy.call("Setup", config)).toMatchObject({
    status: ABORTED,
    message: expect.stringContaining("no more"),
  });
  expect([proxy.leases(), proxy.records()]).toEqual([{}, []]);

  const client = `${import.meta.dir}/../../support/netavark/grpc-client.ts`;
  const { machine } = segment;
  const asker = machine.start([process.execPath, client, proxy.socket, "Setup", JSON.stringify(config)]);
  const seen = server.received().length;
  await server.until((all) => all.length > seen);
  asker.kill("SIGKILL");
  await asker.exited;
  await untilTrue(() => proxy.running.log(), (log) => log.split("releasing lease").length > 2);
  server.change({ rules: {} });
  expect((await proxy.call("Setup", config)).status).toBe(0);
});

test("a container that is gone without Teardown is not renewed, and its lease is given back by the host's link", async () => {
  await using scene = await open({ options: { 58: value.u32(2), 59: value.u32(500) } });
  const { proxy, segment, server } = scene,
    container = await segment.plug("c1"),
    config = await proxy.config(container);
  await proxy.call("Setup", config);
  await segment.machine.sh("ip -n c1 link del eth0");
  await segment.machine.removeContainer(container);
  const seen = server.received().length;
  await Bun.sleep(3000);
  expect(server.received().slice(seen)).toEqual([]);
  expect((await proxy.call("Teardown", config)).lease![12]).toEqual([address]);
  await server.until((all) => kindsOf(all).includes("RELEASE"));
  expect([proxy.leases(), proxy.records()]).toEqual([{}, []]);
});

test("killed at any moment of Setup: Teardown leaves no lease", async () => {
  await using scene = await open();
  const { proxy, segment } = scene;
  for (let round = 0; round < 10; round++) {
    const container = await segment.plug(`k${round}`), config = await proxy.config(container);
    const call = proxy.call("Setup", config);
    await Bun.sleep(Math.random() * 400);
    await proxy.stop("SIGKILL");
    await call;
    await proxy.start();
    expect((await proxy.call("Teardown", config)).status).toBe(0);
    expect([proxy.leases(), proxy.records()]).toEqual([{}, []]);
    // What a proxy before has set stays no longer than the lease.
    expect((await addressesIn(segment, container)).every(({ valid }) => valid <= 600)).toBe(true);
    await segment.machine.removeContainer(container);
  }
});

test("twenty at once, and Clean", async () => {
  await using scene = await open({ address: "192.168.77.100" });
  const { proxy, segment } = scene, containers = [];
  for (let at = 0; at < 20; at++) containers.push(await segment.plug(`c${at}`));
  const configs = await Promise.all(containers.map((one) => proxy.config(one)));
  const answers = await Promise.all(configs.map((config) => proxy.call("Setup", config)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 0));
  expect(new Set(answers.map(({ lease }) => lease![12]![0])).size).toBe(20);
  expect(Object.keys(proxy.leases()!)).toHaveLength(20);
  expect(await proxy.call("Clean")).toMatchObject({ status: 0, lease: { 1: [1] } });
  expect([proxy.leases(), proxy.records()]).toEqual([{}, []]);
});

test("it ends by itself when nobody needs it, and never while it holds a lease", async () => {
  await using scene = await open({}, ["-a", "1"]);
  const { proxy, segment } = scene, container = await segment.plug("c1"), config = await proxy.config(container);
  await untilTrue(() => proxy.running.hasEnded, Boolean);
  expect([proxy.running.exitCode, existsSync(proxy.socket)]).toEqual([0, false]);
  await proxy.start();
  expect((await proxy.call("Setup", config)).status).toBe(0);
  await Bun.sleep(2500);
  expect(proxy.running.hasEnded).toBe(false);
  await proxy.call("Teardown", config);
  await untilTrue(() => proxy.running.hasEnded, Boolean);
  expect(proxy.running.exitCode).toBe(0);
});

test("a socket that systemd hands over stays", async () => {
  await using segment = await serverBehindBridge();
  await using _server = await serveScript(segment.site, { address, leaseSeconds: 600 });
  const proxy = new DhcpProxy(segment), container = await segment.plug("c1"), config = await proxy.config(container);
  await segment.machine.sh(`mkdir -p ${proxy.directory}`);
  const command = [netavarkProgram(), "dhcp-proxy", "-d", proxy.directory, "-a", "0"];
  const log = `${proxy.directory}.log`;
  const activator = segment.start(undefined, ["systemd-socket-activate", "-l", proxy.socket, ...command], { log });
  await activator.until(() => existsSync(proxy.socket));
  expect((await proxy.call("Setup", config)).status).toBe(0);
  await activator.stop();
  expect(activator.exitCode).toBe(0);
  expect(statSync(proxy.socket).isSocket()).toBe(true);
});

test("a second proxy for the same directory, a socket elsewhere, options that are wrong", async () => {
  await using scene = await open();
  const { proxy, segment } = scene, { machine } = segment;
  const second = await netavark(machine, ["dhcp-proxy", "-d", proxy.directory]);
  expect(second).toMatchObject({ code: 1 });
  expect(second.json.error).toContain(`process ${proxy.running.pid} holds the leases`);
  expect(existsSync(proxy.socket)).toBe(true);
  const elsewhere = `${segment.folder}/elsewhere.sock`;
  await using other = await startAt(elsewhere);
  async function startAt(socket: string) {
    const running = segment.start(undefined, [
      netavarkProgram(),
      "dhcp-proxy",
      "-d",
      `${segment.folder}/e`,
      "-u",
      socket,
    ], {
      log: `${segment.folder}/e.log`,
    });
    await running.until(() => existsSync(socket));
    return running;
  }
  expect(other.hasEnded).toBe(false);
  const wrong = await netavark(machine, ["dhcp-proxy", "-a", "soon"]);
  expect(wrong).toMatchObject({ code: 2, stdout: "" });
  expect(wrong.stderr).toContain("invalid value 'soon' for '--activity-timeout <ACTIVITY_TIMEOUT>'");
});
