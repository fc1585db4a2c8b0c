/** podman's networks with addresses from a DHCP server, through the service of the plugin dhcp. */
import { expect, test } from "bun:test";
import { DEFAULT_SOCKET, PODMANS_SOCKET } from "../../../src/services/dhcp/service-protocol.ts";
import { type Segment, serverBehindBridge } from "../../support/dhcp/link.ts";
import type { Running } from "../../support/dhcp/running.ts";
import { OFFER4 } from "../../support/dhcp/offer.ts";
import { openScene, routesIn, untilLeased } from "../../support/dhcp/scene.ts";
import { kindsOf, serveScript, SILENT } from "../../support/dhcp/scripted-server.ts";
import { dnsmasq, serve4 } from "../../support/dhcp/servers-v4.ts";
import { isListening, untilListening } from "../../support/listening.ts";
import { attach, bridgeNetwork, containerIn } from "../../support/netavark/attached.ts";
import { leftSince, momentOf } from "../../support/leftovers.ts";
import { netavark, netavarkProgram } from "../../support/netavark/netavark.ts";
import { network } from "../../support/network.ts";
import { patchbayPlugins } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";
import { ND } from "../../support/netavark/names.ts";

const KEPT = new RegExp(`^[-+] (file ${ND}/|.* (neighbour|link operstate))`);
const address = "192.168.77.50";

for (const driver of ["bridge", "macvlan"]) {
  test.each([["the network's", "7"], ["netavark's", undefined]])(
    `${driver}: an address, a route with %s metric, and the lease is given back`,
    async (_, metric) => {
      await using scene = await openScene({ address, leaseSeconds: 600 });
      const { machine, service, server } = scene, container = await machine.container();
      await machine.sh(`ip link set lo up`, { in: container });
      await machine.sh(`mkdir -p /run/cni; ln -s ${service.socket} /run/cni/dhcp.sock`);
      const before = await momentOf(machine);
      const network = bridgeNetwork(8, {
        driver,
        network_interface: "br0",
        options: { ...metric !== undefined && { metric }, ...driver === "bridge" && { mode: "unmanaged" } },
        ipam_options: { driver: "dhcp" },
        subnets: [],
      });
      const input = { ...containerIn([{ network }]), container_hostname: "larder" };
      const { code, json, stderr } = await attach(machine, "setup", container, input);
      expect([code, stderr, json.error]).toEqual([0, "", undefined]);
      expect(json.net8.interfaces.eth0.subnets).toEqual([{ gateway: "192.168.77.1", ipnet: `${address}/24` }]);
      await untilLeased(scene, container, address);
      expect(await routesIn(scene, container)).toEqual([`default via 192.168.77.1 metric ${metric ?? 100}`]);
      expect(await machine.sh("ip route show default", { in: container })).toContain("proto static");
      expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
      await server.until((received) => kindsOf(received).includes("RELEASE"));
      expect(await leftSince(before, machine, KEPT)).toEqual([]);
    },
  );
}

const ofMaster = (number = 8) =>
  bridgeNetwork(number, {
    driver: "macvlan",
    network_interface: "br0",
    ipam_options: { driver: "dhcp" },
    subnets: [],
  });

/** As podman's unit netavark-dhcp-proxy.socket starts it. */
function startByUnit(segment: Segment, ...options: string[]): Running {
  const command = [netavarkProgram(), "dhcp-proxy", ...options];
  const log = `${segment.folder}/proxy.log`;
  return segment.start(undefined, ["systemd-socket-activate", "-l", PODMANS_SOCKET, ...command], { log });
}

test("podman's units start the service: setup finds it, and so does the plugin; without leases it ends", async () => {
  await using segment = await serverBehindBridge();
  const { machine } = segment, server = await serveScript(segment.site, { address, leaseSeconds: 600 });
  await machine.sh("mkdir -p /run/podman");
  const activator = startByUnit(segment, "-a", "1");
  await untilListening(machine, PODMANS_SOCKET);
  const container = await machine.container(), input = containerIn([{ network: ofMaster() }]);
  expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0, stderr: "" });
  await untilLeased({ segment }, container, address);
  expect(activator.hasEnded).toBe(false);
  const net = network(machine, { type: "dhcp", ipam: { type: "dhcp" } });
  expect(await net.call("STATUS", undefined)).toMatchObject({ code: 0 });
  expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
  await server.until((received) => kindsOf(received).includes("RELEASE"));
  await untilTrue(() => activator.hasEnded, Boolean);
  expect([activator.exitCode, await machine.sh("ls /var/lib/cni/dhcp")]).toEqual([0, "given-back\nlock\n"]);
});

test("another make's service at podman's socket is none, and one service at a time has the leases", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment;
  await machine.sh("mkdir -p /run/podman");
  const flags = ["-socketpath", "/run/cni/dhcp.sock"];
  const command = [`${patchbayPlugins()}/dhcp`, "daemon", ...flags];
  await using first = segment.start(undefined, command, { log: `${folder}/first.log` });
  await untilListening(machine, "/run/cni/dhcp.sock");
  expect(await netavark(machine, ["dhcp-proxy"])).toMatchObject({
    code: 1,
    json: { error: `process ${first.pid} holds the leases in /var/lib/cni/dhcp` },
  });
  await first.stop();
  const settings = "[0, 0, 0, 4, 0, 0, 0, 0, 0]";
  const program = `Bun.listen({ unix: "${PODMANS_SOCKET}", socket: {
    open: (socket) => void socket.end(new Uint8Array(${settings})), data() {} } })`;
  await using _ = segment.start(undefined, [process.execPath, "-e", program], { log: `${folder}/other.log` });
  await untilListening(machine, PODMANS_SOCKET);
  const container = await machine.container();
  const { code, json } = await attach(machine, "setup", container, containerIn([{ network: ofMaster() }]));
  expect([code, json.error]).toEqual([1, expect.stringMatching(/dial unix \/run\/cni\/dhcp\.sock.*patchbay dhcp/s)]);
});

const ways = ["the service goes on", "the service ends in between", "the service is killed before"] as const;

test.each(ways)(
  "a container that is started again with another MAC address has its address again: %s",
  async (way) => {
    await using segment = await serverBehindBridge();
    const { machine } = segment;
    await serve4(dnsmasq, segment.site, { ...OFFER4, leaseSeconds: 600 });
    const start = async () => {
      const service = segment.start(undefined, [`${patchbayPlugins()}/dhcp`, "daemon"], {
        log: `${segment.folder}/service.log`,
      });
      await service.until(() => isListening(service, DEFAULT_SOCKET));
      return service;
    };
    let service = await start();
    const macvlan = { driver: "macvlan", network_interface: "br0", ipam_options: { driver: "dhcp" }, subnets: [] };
    const input = containerIn([{ network: bridgeNetwork(8, macvlan) }]), macs = new Set(), addresses = new Set();
    for (let times = 0; times < 4; times++) {
      const container = await machine.container(`start${times}`);
      const { json } = await attach(machine, "setup", container, input);
      const { mac_address, subnets: [subnet] } = json.net8.interfaces.eth0;
      macs.add(mac_address);
      addresses.add(subnet.ipnet);
      if (way === "the service is killed before") await service.stop("SIGKILL");
      expect(await attach(machine, "teardown", container, input)).toMatchObject({ code: 0, stderr: "" });
      await machine.removeContainer(container);
      if (way === "the service goes on") continue;
      await service.stop();
      service = await start();
    }
    await service.stop();
    expect([macs.size, addresses.size]).toEqual([4, 1]);
  },
);

test("without the service, an error that says how to start it", async () => {
  await using scene = await openScene({ address, leaseSeconds: 600 });
  const container = await scene.machine.container();
  const { code, json } = await attach(scene.machine, "setup", container, containerIn([{ network: ofMaster() }]));
  expect(code).toBe(1);
  expect(json.error).toMatch(/dhcp\.sock.*patchbay dhcp/s);
});

test("a server may take as long as the service's --timeout says", async () => {
  await using segment = await serverBehindBridge();
  const { machine, folder } = segment;
  await serveScript(segment.site, { address, leaseSeconds: 600, rules: { any: SILENT } });
  await machine.sh("mkdir -p /run/podman");
  const command = [netavarkProgram(), "dhcp-proxy", "--timeout", "1"];
  await using _ = segment.start(undefined, command, { log: `${folder}/service.log` });
  await untilListening(machine, PODMANS_SOCKET);
  const container = await machine.container();
  const { code, json } = await attach(machine, "setup", container, containerIn([{ network: ofMaster() }]));
  expect([code, json.error]).toEqual([1, expect.stringContaining("waited 1 s")]);
});
