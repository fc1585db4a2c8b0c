/** What our plugins are told of a container of podman's, and what podman is told of their result. No plugin runs. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Invocation } from "../../../../src/cni/invocation.ts";
import type { Result } from "../../../../src/cni/result.ts";
import type { CheckedCall } from "../../../../src/interop/podman-documents/container-call.ts";
import type { NetavarkConf, PodmanNetwork } from "../../../../src/interop/podman-documents/netavark.schema.ts";
import type { Session } from "../../../../src/engine/session.ts";
import { driverToSetUp, driverToTearDown } from "../../../../src/frontends/netavark/container/own-driver.ts";
import { driverConf, driverNetwork, mapping } from "../../../support/netavark/driver-conf.ts";

const { configDirectory, isRootless, firewall, dnsPort, isolatesByDefault } = driverConf();
const settings = {
  configDirectory,
  isRootless,
  firewall,
  dnsPort,
  isolatesByDefault,
  aardvarkBinary: process.execPath,
  pluginDirectories: ["/none"],
};
const attachment = { name: "orchard", interface_name: "eth0", static_ips: ["10.8.0.9", "fd08::9"] };

function wanted(network: Partial<PodmanNetwork> = {}, call: Partial<CheckedCall> = {}) {
  const described = driverNetwork(network);
  return {
    network: described,
    attachment,
    call: {
      container_id: "c1",
      container_name: "web",
      network_info: { orchard: described },
      attachments: [attachment],
      isListed: true,
      ...call,
    },
  };
}

/** What the driver calls of a session, and the status that it makes of the result. */
function setUp(wish: ReturnType<typeof wanted>, result: Partial<Result> = {}, aardvarkBinary = process.execPath) {
  const calls: { plugin: string; invocation: Invocation }[] = [];
  const session = {
    runVerb({ name }: { name: string }, invocation: Invocation): Result {
      calls.push({ plugin: name, invocation });
      return { cniVersion: "1.1.0", ...result };
    },
  } as unknown as Session;
  const status = driverToSetUp(wish, { ...settings, aardvarkBinary }).setUp(session, "/run/netns/c1");
  const { plugin, invocation } = calls[0]!;
  return { plugin, invocation, conf: JSON.parse(invocation.stdin) as NetavarkConf, status };
}

test("a plugin is told what podman said, and what the command line said", () => {
  const wish = wanted({}, { port_mappings: [mapping()], dns_servers: ["192.0.2.53"] });
  const { plugin, invocation, conf } = setUp(wish);
  expect(plugin).toBe("netavark-bridge");
  expect(invocation).toMatchObject({ command: "ADD", containerId: "c1", ifName: "eth0", netnsPath: "/run/netns/c1" });
  const { name: _, ...network_options } = attachment,
    { aardvarkBinary: __, pluginDirectories: ___, ...said } = settings;
  expect(conf).toEqual({
    cniVersion: "1.1.0",
    name: "orchard",
    type: "netavark-bridge",
    network: wish.network,
    network_options,
    container_name: "web",
    port_mappings: [mapping()],
    dns_servers: ["192.0.2.53"],
    ...said,
  });
  expect(setUp(wanted({ driver: "macvlan" })).plugin).toBe("netavark-vlan");
  expect(setUp(wanted({ driver: "ipvlan" })).plugin).toBe("netavark-vlan");
});

test("names are for bridges whose network has them, where there is aardvark-dns", () => {
  const named = { dns_enabled: true },
    names = (wish: ReturnType<typeof wanted>) => driverToSetUp(wish, settings).names;
  expect(names(wanted(named))).toMatchObject({ name: "orchard", gateways: ["10.8.0.1", "fd08::1"], names: ["web"] });
  expect(setUp(wanted(named)).conf.aardvarkBinary).toBe(process.execPath);
  const without: [ReturnType<typeof wanted>, binary?: string][] = [
    [wanted()],
    [wanted({ ...named, driver: "macvlan" })],
    [wanted(named, { container_id: "a b" })],
    [wanted(named), "/none/aardvark-dns"],
  ];
  for (const [wish, binary = process.execPath] of without) {
    expect(driverToSetUp(wish, { ...settings, aardvarkBinary: binary }).names).toBeUndefined();
    expect(setUp(wish, {}, binary).conf.aardvarkBinary).toBeUndefined();
  }
});

test("what is refused is refused before anything is called", () => {
  expect(() => driverToSetUp(wanted({ network_interface: "" }), settings)).toThrow("no bridge interface name given");
  driverToTearDown(wanted({ network_interface: "" }), settings);
});

const dhcp = (network: Partial<PodmanNetwork> = {}) => ({
  ipam_options: { driver: "dhcp" },
  subnets: [],
  ...network,
  options: { mode: "unmanaged", ...network.options },
});
const clients: [network: Partial<PodmanNetwork>, call: Partial<CheckedCall>, ipam: object | undefined][] = [
  [{}, {}, undefined],
  [{ ipam_options: { driver: "host-local" } }, {}, undefined],
  [dhcp(), {}, { type: "dhcp", priority: 100 }],
  [dhcp({ options: { metric: "7" } }), {}, { type: "dhcp", priority: 7 }],
  [dhcp(), { container_hostname: "cup" }, { type: "dhcp", priority: 100, hostname: "cup" }],
  [dhcp({ options: { no_default_route: "true" } }), {}, { type: "dhcp", priority: 100, ignore: ["routers"] }],
  [dhcp({ options: { no_default_route: "false" } }), {}, { type: "dhcp", priority: 100 }],
  [dhcp({ internal: true }), { dns_servers: [] }, { type: "dhcp", priority: 100, ignore: ["routers", "dns"] }],
];
test.each(clients)("the client of DHCP with %j, %j is %j", (network, call, ipam) => {
  expect(setUp(wanted(network, call)).conf.ipam).toEqual(ipam as { type: string });
});

test("podman is told of the link in the container", () => {
  const sandbox = "/run/netns/c1", mac = "02:00:00:00:00:03";
  const interfaces = [
    { name: "eth0", mac: "02:00:00:00:00:01" },
    { name: "other", mac: "02:00:00:00:00:02", sandbox },
    { name: "eth0", mac, sandbox },
  ];
  const ips = [{ address: "10.8.0.9/24", gateway: "10.8.0.1" }, { address: "fd08::9/64" }];
  const { status } = setUp(wanted(), { interfaces, ips, dns: { search: ["dns.podman"], nameservers: ["10.8.0.1"] } });
  expect(status).toEqual({
    dns_search_domains: ["dns.podman"],
    dns_server_ips: ["10.8.0.1"],
    interfaces: {
      eth0: {
        mac_address: mac,
        subnets: [{ gateway: "10.8.0.1", ipnet: "10.8.0.9/24" }, { gateway: null, ipnet: "fd08::9/64" }],
      },
    },
  });
  expect(setUp(wanted()).status).toEqual({
    dns_search_domains: [],
    dns_server_ips: null,
    interfaces: { eth0: { mac_address: "", subnets: [] } },
  });
});

test("teardown of what was never set up is a DEL, and no link is missed", () => {
  const before = process.env["PATCHBAY_STATE_DIR"], directory = mkdtempSync(join(tmpdir(), "patchbay-state-"));
  process.env["PATCHBAY_STATE_DIR"] = directory;
  const commands: string[] = [];
  const session = {
    runVerb: (_: unknown, { command }: Invocation) => void commands.push(command),
    withHost: () => expect.unreachable(),
  } as unknown as Session;
  try {
    driverToTearDown(wanted(), settings).tearDown(session, "/run/netns/c1");
  } finally {
    if (before === undefined) delete process.env["PATCHBAY_STATE_DIR"];
    else process.env["PATCHBAY_STATE_DIR"] = before;
    rmSync(directory, { recursive: true });
  }
  expect(commands).toEqual(["DEL"]);
});
