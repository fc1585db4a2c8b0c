/** Whatever clients of the service's socket say or do not say, the service goes on serving. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { usualOptions } from "../../../support/dhcp/lease-record.ts";
import { openScene } from "../../../support/dhcp/scene.ts";
import { serveScript } from "../../../support/dhcp/scripted-server.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { startService, untilIdle } from "../../../support/dhcp/service.ts";
import { connectFrom, type Said, say } from "../../../support/dhcp/raw-client.ts";
import { isListening, untilListening } from "../../../support/listening.ts";
import { network } from "../../../support/network.ts";
import { environmentOf, GO_PLUGINS, patchbayPlugins } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";

const address = "192.168.77.50";
const owner = { network: "net", containerId: "ctr-x", ifName: "eth0" };
const wishes = { ...usualOptions, timeout: 1 };
const acquire = { version: 1, do: "acquire", owner, netnsPath: "/run/netns/c9", wishes };
const line = (request: unknown) => `${JSON.stringify(request)}\n`;

test("malformed requests get an answer that says so, and nothing of them stays open", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  const { machine } = segment;
  await machine.container("c9");
  const netns = "/run/netns/c9", own = "/proc/self/ns/net";
  const cases: [said: Said, answer: RegExp][] = [
    [{ text: "hello\n" }, /"failure":"the request/],
    // test/services/dhcp/journal/reading.test.ts has more requests that are none.
    [{ text: line(acquire) }, /the request has no namespace with it/],
    [{ text: line({ ...acquire, owner: null }), open: netns }, /owner is wrong/],
    [{ text: line({ ...acquire, wishes: { ...wishes, clientId: "zz" } }), open: netns }, /clientId of the wishes/],
    [{ text: line(acquire), open: "/etc/hostname" }, /"failure":"/],
    [{ text: line(acquire), open: "/proc/self/ns/mnt" }, /"failure":"/],
    [{ text: line(acquire), open: netns }, /error looking up \\"eth0\\": Link not found/],
    [{ text: line({ ...acquire, owner: { ...owner, ifName: "lo" } }), open: own }, /is the host's own/],
    [{ text: "x".repeat(65 * 1024) }, /the request is longer than 65536 bytes/],
    [{ text: "CONNECT /_goRPC_ HTTP/1.0\n\n" }, /^HTTP\/1.0 501 this is Patchbay's DHCP service/],
  ];
  for (const [said, answer] of cases) {
    expect({ said, answer: await say(machine, service.socket, said) }).toEqual({
      said,
      answer: expect.stringMatching(answer),
    });
  }
  await untilIdle(service);
  expect(service.hasEnded).toBe(false);
  expect(service.records()).toEqual([]);
});

test("who says half a line or nothing keeps nobody waiting", async () => {
  await using scene = await openScene({ address });
  const { machine, service } = scene;
  const silent = await connectFrom(machine, service.socket, { text: "", count: 20 });
  const half = await connectFrom(machine, service.socket, { text: '{"version": 1, ', count: 20 });
  const container = await machine.container("c1"), net = service.network();
  expect((await net.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);
  // The service ends these connections, not they.
  expect([await silent.closed, await half.closed]).toEqual(["", ""]);
  await net.del(container);
  await untilIdle(service);
});

test("root with the capabilities for it is served, and others are told why they are not", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  const { machine } = segment, container = await machine.container("c1");
  await machine.sh(`chmod 755 ${segment.folder} && chmod 777 ${service.socket}`);
  const report = line({ version: 1, do: "report", network: "net" });
  const callers: [as: string[], failure: string | undefined, hint?: string][] = [
    [[], undefined],
    [["unshare", "--mount", "--net", "--uts", "--ipc"], undefined],
    [["unshare", "--pid", "--fork"], undefined],
    [["setpriv", "--bounding-set=-all,+net_admin,+sys_admin"], undefined],
    [["setpriv", "--reuid=1000", "--clear-groups"], "serves root, and not user 1000", "as root"],
    [["setpriv", "--bounding-set=-net_admin"], "does not have CAP_NET_ADMIN,", "with the capabilities"],
    [["setpriv", "--bounding-set=-sys_admin"], "does not have CAP_SYS_ADMIN,", "with the capabilities"],
    [["setpriv", "--bounding-set=-all"], "does not have CAP_NET_ADMIN and CAP_SYS_ADMIN,", "with the capabilities"],
    [["unshare", "--user", "--map-root-user"], "serves its own user namespace", "where the service was started"],
  ];
  for (const [as, failure, hint] of callers) {
    const answer = JSON.parse(await say(machine, service.socket, { text: report, as }));
    const expected = failure === undefined
      ? { report: { unanswered: 0 } }
      : { failure: expect.stringContaining(failure), hint: expect.stringContaining(hint!) };
    expect([as, answer]).toEqual([as, { version: 1, ...expected }]);
  }
  const begun = `patchbay dhcp: holds the leases in ${service.directory}, and listens on ${service.socket}\n`;
  expect(service.log()).toBe(begun);

  // STATUS as well, and says of the leases that are held nothing that is not true.
  const holder = await machine.container("holder"), net = service.network();
  await serveScript(segment.site, { address });
  await net.add(holder);
  const statusConf = { cniVersion: "1.1.0", name: "net", type: "dhcp", ipam: service.ipam() };
  const statusEnv = environmentOf(patchbayPlugins(), { plugin: "dhcp", command: "STATUS", conf: statusConf });
  for (const [as, failure, hint] of callers) {
    const options = { env: statusEnv, stdin: JSON.stringify(statusConf) };
    const { stdout } = await machine.run([...as, `${patchbayPlugins()}/dhcp`], options);
    const [msg, details] = [failure, hint].map((text = "") => expect.stringContaining(text));
    const refusal = failure === undefined ? undefined : { cniVersion: "1.1.0", code: 50, msg, details };
    expect([as, stdout === "" ? undefined : JSON.parse(stdout)]).toEqual([as, refusal]);
  }
  await net.del(holder);

  // The plugin passes it on, also where it is too late to say what it wants.
  const conf = { cniVersion: "1.1.0", name: "net", type: "macvlan", master: "br0", ipam: service.ipam() };
  const env = environmentOf(patchbayPlugins(), { plugin: "dhcp", command: "ADD", conf, container });
  for (const inject of [[], ["-e", "inject=sendmsg:error=EPIPE"]]) {
    const words = ["strace", "-qq", "-o", "/dev/null", ...inject, `${patchbayPlugins()}/dhcp`];
    const { code, stdout } = await machine.run(["setpriv", "--bounding-set=-net_admin", ...words], {
      env,
      stdin: JSON.stringify(conf),
    });
    expect([inject, code, JSON.parse(stdout)]).toEqual([inject, 1, {
      cniVersion: "1.1.0",
      code: expect.any(Number),
      msg: expect.stringContaining("does not have CAP_NET_ADMIN, which the DHCP service asks of its callers"),
      details: expect.stringContaining("call the plugin with the capabilities of the container engine"),
    }]);
  }
});

test("a service that does not see its callers says how to start it", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, socket = "/run/dhcp.sock", words = [`${patchbayPlugins()}/dhcp`, "daemon"];
  const inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", ...words];
  await using service = machine.start([...inside, "-socketpath", socket, "-datadir", "/run/leases"]);
  await untilListening(machine, socket);
  expect(await say(machine, socket, { text: line({ version: 1, do: "report", network: "net" }) })).toContain(
    "hostPID",
  );
  // It runs, so starting one is no advice.
  const conf = { type: "dhcp", ipam: { type: "dhcp", daemonSocketPath: socket, dataDir: "/run/leases" } };
  const { json } = await network(machine, conf).call("STATUS", undefined);
  expect(json).toMatchObject({ code: 50, msg: expect.stringContaining("does not see the process that asks") });
  expect(json.details).toStartWith(
    "start the service in the process namespace of the container engine (hostPID: true",
  );
  service.kill("SIGKILL");
  await service.exited;
});

test("600 connections at once, and as many descriptors as a process may have", async () => {
  await using scene = await openScene({ address });
  const { machine, service } = scene;
  await machine.sh(`prlimit --pid ${service.pid} --nofile=200:1024`);
  const crowd = await connectFrom(machine, service.socket, { text: "", count: 600 });
  await untilTrue(() => service.descriptors().length, (count) => count >= 195);
  // A client that connects when there is no room waits for it.
  const report = say(machine, service.socket, { text: line({ version: 1, do: "report", network: "net" }) });
  await untilTrue(() => service.log(), (log) => log.includes("too many open files"));
  await crowd.end();
  expect(await report).toContain('"report"');
  const container = await machine.container("c1"), net = service.network();
  expect((await net.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);
  await net.del(container);
  await machine.sh(`prlimit --pid ${service.pid} --nofile=1024:1024`);
  const again = await connectFrom(machine, service.socket, { text: "", count: 600 });
  await untilTrue(() => service.descriptors().length, (count) => count > 500);
  await again.end();
  await net.add(container);
  await net.del(container);
  await untilIdle(service);
  expect(service.hasEnded).toBe(false);
});

test("600 who say half a line, and 600 who never read their answer: there is room for others", async () => {
  await using scene = await openScene({ address });
  const { segment, service } = scene;
  const { machine } = segment, report = line({ version: 1, do: "report", network: "net" });
  const deaf = await connectFrom(machine, service.socket, { text: report, count: 600, isDeaf: true });
  const half = await connectFrom(machine, service.socket, { text: report.slice(0, -1), count: 600 });
  const container = await machine.container("c1"), net = service.network();
  expect((await net.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);
  await net.del(container);
  await untilIdle(service);
  expect(await half.closed).toBe("");
  await deaf.end();
});

test("those who are refused, and come again and again, keep nobody waiting", async () => {
  await using scene = await openScene({ address });
  const { machine, service } = scene;
  const again = `
    import { connectTo } from "${resolve(import.meta.dir, "../../../../src/ffi/socket/unix.ts")}";
    import { closeFile } from "${resolve(import.meta.dir, "../../../../src/ffi/files.ts")}";
    process.stdout.write("begins\\n");
    for (;;) closeFile(connectTo(${JSON.stringify(service.socket)}));
  `;
  const powerless = ["setpriv", "--bounding-set=-all", process.execPath, "-e", again];
  const crowd = Array.from({ length: 3 }, () => machine.start(powerless));
  for (const one of crowd) await one.stdout.getReader().read();
  const container = await machine.container("c1"), net = service.network();
  expect((await net.add(container)).ips).toMatchObject([{ address: `${address}/24` }]);
  await net.del(container);
  expect(crowd.map(({ exitCode }) => exitCode)).toEqual([null, null, null]);
  for (const one of crowd) one.kill("SIGKILL");
  await Promise.all(crowd.map(({ exited }) => exited));
  await untilIdle(service);
});

test("who goes on talking while the answer takes its time gets none", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  await segment.plug("c9");
  const text = line({ ...acquire, wishes: { ...wishes, timeout: 1000 } }) + "x".repeat(100_000);
  expect(await say(segment.machine, service.socket, { text, open: "/run/netns/c9" })).toBe("");
  await untilIdle(service);
  expect(service.records()).toEqual([]);
});

test("Go's plugin and our service, our plugin and Go's service: words, and no waiting", async () => {
  await using segment = await serverBehindBridge();
  await using service = await startService(segment);
  const { machine } = segment, container = await segment.plug("c1");
  const conf = { cniVersion: "1.0.0", name: "net", type: "macvlan", ipam: service.ipam() };
  const env = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "x", CNI_NETNS: container.netnsPath, CNI_IFNAME: "eth0" };
  const stdin = JSON.stringify(conf), program = `${GO_PLUGINS}/dhcp`;
  const go = await machine.run([program], { env: { ...env, CNI_PATH: GO_PLUGINS }, stdin });
  expect(go.code).toBe(1);
  expect(JSON.parse(go.stdout).msg).toContain(
    "501 this is Patchbay's DHCP service; Patchbay's dhcp plugin speaks with it",
  );

  const socket = `${segment.folder}/go.sock`, log = `${segment.folder}/go.log`;
  const daemon = segment.start(undefined, [program, "daemon", "-socketpath", socket], { log });
  await daemon.until(() => isListening(machine, socket));
  const net = service.network({}, { daemonSocketPath: socket, dataDir: `${segment.folder}/none` });
  const add = await net.call("ADD", container, { ifName: "eth1" });
  expect(add.code).toBe(1);
  expect(add.json.msg).toContain(`a DHCP daemon of another make listens on ${socket}`);
  expect(add.json.details).toContain("patchbay dhcp");
  // It knows nothing of ours, so there is nothing that it would have to do.
  await net.del(container, { ifName: "eth1" });
  await daemon.stop();
});
