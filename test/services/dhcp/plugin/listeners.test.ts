/** Whom the plugin asks, and whom it believes: who listens where it looks for the service. */
import { expect, test } from "bun:test";
import { DEFAULT_SOCKET, PODMANS_SOCKET } from "../../../../src/services/dhcp/service-protocol.ts";
import { serverBehindBridge } from "../../../support/dhcp/link.ts";
import { Listener } from "../../../support/dhcp/listener.ts";
import { serveScript } from "../../../support/dhcp/scripted-server.ts";
import { isListening } from "../../../support/listening.ts";
import { network } from "../../../support/network.ts";
import { patchbayPlugins } from "../../../support/plugins.ts";
import { untilTrue } from "../../../support/until-true.ts";

const FOLDER = "/run/another", SOCKET = `${FOLDER}/dhcp.sock`;
const verbs = ["ADD", "CHECK", "DEL", "STATUS", "GC"] as const;
const valid = { conf: { "cni.dev/valid-attachments": [] } };

test("a process of another user is told nothing and given no namespace", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, container = await segment.plug("c1");
  await machine.sh(`mkdir -m 777 ${FOLDER}`);
  await using listener = await Listener.start(segment, SOCKET, ["setpriv", "--reuid=1000", "--clear-groups"]);
  listener.say('{"version":1,"report":{"unanswered":0},"owners":[]}\n');
  const conf = { type: "dhcp", ipam: { type: "dhcp", daemonSocketPath: SOCKET, dataDir: `${FOLDER}/none` } };
  const net = network(machine, conf);
  for (const verb of verbs) {
    const { code, json } = await net.call(verb, ["STATUS", "GC"].includes(verb) ? undefined : container, valid);
    // There is no lease to give back.
    const isDone = verb === "DEL" || verb === "GC";
    expect([verb, code, json?.msg]).toEqual([
      verb,
      isDone ? 0 : 1,
      isDone ? undefined : expect.stringMatching(/process \d+ of user 1000 listens on \/run\/another\/dhcp\.sock/),
    ]);
  }
  // It writes a visit down after the caller has gone.
  const visits = await untilTrue(() => listener.visits(), ({ length }) => length >= verbs.length);
  expect(visits).toEqual(verbs.map(() => ({ text: "", descriptors: 0 })));
});

const lease = {
  address: "192.168.77.50/24",
  server: "192.168.77.1",
  routers: [],
  isClassless: false,
  nameServers: [],
  search: [],
  timeServers: [],
  lease: 60,
  renew: 30,
  rebind: 50,
};

test("a malformed answer is an error of ADD, and keeps no container from being deleted", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, container = await segment.plug("c1");
  await machine.sh(`mkdir ${FOLDER}`);
  await using listener = await Listener.start(segment, SOCKET);
  const ipam = { type: "dhcp", daemonSocketPath: SOCKET, dataDir: `${FOLDER}/none` };
  const net = network(machine, { type: "dhcp", ipam });
  const answer = (change: object) => `${JSON.stringify({ version: 1, lease, ...change })}\n`;
  listener.say(answer({}));
  expect((await net.add(container)).ips).toEqual([{ address: lease.address }]);
  const answers = [
    "hello\n",
    "null\n",
    answer({ version: "1" }),
    answer({ lease: { ...lease, address: "192.168.77.50" } }),
    answer({ lease: { ...lease, routers: "many" } }),
    answer({ lease: { ...lease, nameServers: [{}] } }),
    answer({ lease: { ...lease, domain: ["x"] } }),
    answer({ failure: {} }),
  ];
  for (const text of answers) {
    listener.say(text);
    const { code, json } = await net.call("ADD", container);
    const msg = expect.stringContaining(`what listens on ${SOCKET} is no DHCP service of ours`);
    expect([text, code, json]).toEqual([text, 1, expect.objectContaining({ msg })]);
    expect([text, (await net.call("DEL", container)).code]).toEqual([text, 0]);
  }
  // A list that never ends.
  listener.say(answer({ owners: [{ network: "net", containerId: "ctr-c1", ifName: "eth0" }] }));
  await net.gc([container]);
});

test("podman's unit is started by ADD and DEL alone, and never for a directory of its own", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, container = await segment.plug("c1");
  await machine.sh("mkdir -p /run/podman");
  await using listener = await Listener.start(segment, PODMANS_SOCKET);
  const counts = [];
  for (const dataDir of [undefined, "/run/leases"]) {
    const net = network(machine, { type: "dhcp", ipam: { type: "dhcp", dataDir } });
    for (const verb of verbs) {
      const before = listener.visits().length;
      await net.call(verb, ["STATUS", "GC"].includes(verb) ? undefined : container, valid);
      counts.push([dataDir, verb, listener.visits().length - before]);
    }
  }
  const isAsked = (dataDir: unknown, verb: string) => dataDir === undefined && ["ADD", "DEL"].includes(verb);
  expect(counts).toEqual(counts.map(([dataDir, verb]) => [dataDir, verb, isAsked(dataDir, verb as string) ? 1 : 0]));
});

test("podman's service is asked when the other one cannot start, because podman's has the leases", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment, address = "192.168.77.50";
  await serveScript(segment.site, { address, leaseSeconds: 1000 });
  await machine.sh("mkdir -p /run/podman /run/cni");
  const program = `${patchbayPlugins()}/dhcp`;
  await using podmans = segment.start(undefined, [program, "daemon", "-socketpath", PODMANS_SOCKET], {
    log: `${folder}/podmans.log`,
  });
  await podmans.until(() => isListening(machine, PODMANS_SOCKET));
  // The unit cni-dhcp.socket does it so.
  const unit = () =>
    segment.start(undefined, ["systemd-socket-activate", "-l", DEFAULT_SOCKET, program, "daemon"], {
      log: `${folder}/unit.log`,
    });
  const container = await segment.plug("c1"), net = network(machine, { type: "dhcp", ipam: { type: "dhcp" } });
  for (const verb of ["ADD", "CHECK", "STATUS", "DEL"] as const) {
    await machine.sh(`rm -f ${DEFAULT_SOCKET}`);
    await using activated = unit();
    await activated.until(() => isListening(machine, DEFAULT_SOCKET));
    const { code, json } = await net.call(verb, verb === "STATUS" ? undefined : container);
    expect([verb, code, json?.msg]).toEqual([verb, 0, undefined]);
    await untilTrue(() => activated.hasEnded, Boolean);
    expect(activated.log()).toContain(`process ${podmans.pid} holds the leases in /var/lib/cni/dhcp`);
  }
});
