/** What `create` and `setup` refuse: stdout is `{"error": …}`, the exit status 1, and nothing is made. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { version } from "../../../package.json";
import type { PodmanNetwork } from "../../../src/interop/podman-documents/netavark.schema.ts";
import { leftSince, type Moment, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import {
  bareNetwork,
  callDriver,
  CONFIGS,
  DriverNetwork,
  port,
  type Wanted,
  writeConflist,
} from "../../support/podman-driver.ts";

const subnets = [{ subnet: "10.8.0.0/24" }];
const web = (more: Record<string, string> = {}): Partial<PodmanNetwork> => ({
  options: { conflist: "web", ...more },
});
/** A conflist with a plugin for ports, and its own range of addresses. */
const own: Partial<PodmanNetwork> = { options: { conflist: "own" } };
let machine: Machine, container: Container, moment: Moment;
beforeAll(async () => {
  machine = await openMachine();
  container = await machine.container("c1");
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.7.0.0/24" }]] };
  await writeConflist(machine, { name: "web", plugins: [{ type: "bridge", bridge: "web0", ipam }] });
  await writeConflist(machine, {
    name: "own",
    plugins: [{
      type: "bridge",
      bridge: "own0",
      isGateway: true,
      ipam: { type: "host-local", subnet: "10.8.0.0/24" },
    }, {
      type: "portmap",
      capabilities: { portMappings: true },
    }],
  });
  await writeConflist(machine, { name: "wrong", plugins: [{ type: "bridge", mtu: "1500" }] });
  await writeConflist(machine, { name: "future", cniVersion: "9.0.0", plugins: [{ type: "bridge" }] });
  await writeConflist(machine, { name: "absent", plugins: [{ type: "calico" }] });
  await writeConflist(machine, { name: "lost", plugins: [{ type: "macvlan", master: "nolink0", ipam }] });
  // Bridges and what they share stay after the first container.
  const [ips, ports] = [["10.8.0.5"], [port(8080, 80)]];
  await (await DriverNetwork.create(machine, own)).once(container, { ips, ports });
  await (await DriverNetwork.create(machine, web())).once(container);
  moment = await quietMoment(machine);
});
afterAll(async () => await machine[Symbol.asyncDispose]());

async function refusal(words: string[], document: unknown): Promise<string> {
  const { code, stdout, json } = await callDriver(machine, words, document);
  expect({ code, lines: stdout.split("\n").length, keys: Object.keys(json ?? {}) })
    .toEqual({ code: 1, lines: 2, keys: ["error"] });
  return json.error;
}

/** What podman hands over, and what the error must name: key, value, and what is allowed. */
const networks: [given: Partial<PodmanNetwork>, ...says: string[]][] = [
  [{}, "--opt conflist=NAME", "/run/net.d has", "web", "pod-net.conflist"],
  [{ options: { conflist: "nets" } }, "option conflist=nets", CONFIGS, "absent, future, lost, own, web, wrong"],
  [{ options: { conflist: "wrong" } }, "wrong.conflist:1:", "mtu", "must be an integer"],
  [{ options: { conflist: "future" } }, "9.0.0", "1.1.0"],
  [{ options: { conflist: "absent" } }, "calico"],
  [{ options: { conflist: "lost" } }, "nolink0"],
  [{ options: { conflist: "web", mtu: "1400" } }, "option mtu=1400", "conflist"],
  [{ options: { conflist: "web", "bridge.mtu": "1400" } }, "option bridge.mtu=1400", "conflist"],
  [{ options: { conflist: "web" }, subnets }, "subnet 10.8.0.0/24", "conflist"],
  [{ options: { conflist: "web" }, internal: true }, "internal", "conflist"],
  [{ options: { conflist: "web" }, ipv6_enabled: true }, "ipv6_enabled", "conflist"],
  [{ options: { conflist: "web" }, network_interface: "br7" }, 'network_interface "br7"', "conflist"],
  [{ options: { conflist: "web" }, ipam_options: { driver: "dhcp" } }, 'ipam driver "dhcp"', "conflist"],
  [{ options: { conflist: "web" }, routes: [{ destination: "10.0.0.0/8", gateway: "10.7.0.9" }] }, "10.0.0.0/8"],
  [{ ...web(), network_dns_servers: ["9.9.9.9"] }, "network_dns_servers 9.9.9.9"],
  [web({ isolate: "true" }), "option isolate=true", "conflist, pluginPath, ports"],
  [web({ conflict: "1" }), "option conflict=1", 'did you mean "conflist"?'],
  [{ options: { conflits: "web" } }, 'option conflits=web: it is not known; did you mean "conflist"?', "use --opt"],
  [{ options: { ports: "yes" } }, 'option ports=yes: the only value is "ignore"; no CNI network is named: use --opt'],
  [web({ ports: "yes" }), "option ports=yes", '"ignore"'],
  [web({ pluginPath: "/run/nothing" }), "/run/nothing", "bridge"],
  [
    { options: { plugins: "ptp,bandwidth" }, subnets },
    "option plugins=ptp,bandwidth: it is not known",
    "--opt conflist=NAME",
    `${CONFIGS}/pod-net.conflist`,
    '"ipam":{"type":"host-local","ranges":[[{"subnet":"10.8.0.0/24"}]]}},{"type":"portmap"',
  ],
  [{ ...web(), options: { conflist: "-net" } }, "-net"],
];

test.each(networks)("create refuses %j", async (given, ...says) => {
  const error = await refusal(["create"], bareNetwork(given));
  for (const part of says) expect(error).toContain(part);
});

test("the conflist that create prints can be used as it is, beside what there is", async () => {
  await using machine = await openMachine();
  await machine.sh(
    "ip link add pod-net0 type bridge; ip address add 10.77.0.1/24 dev pod-net0; ip link set pod-net0 up; " +
      "ip route add default via 10.77.0.2",
  );
  const ipam = { type: "host-local", subnet: "10.77.1.0/24" };
  await writeConflist(machine, {
    name: "other",
    plugins: [{ type: "bridge", bridge: "pod-net1", isGateway: true, ipam }],
  });
  const { json } = await callDriver(machine, ["create"], bareNetwork());
  const list = JSON.parse(json.error.slice(json.error.indexOf("{")));
  expect(list.plugins).toEqual([
    {
      type: "bridge",
      bridge: "pod-net2",
      isDefaultGateway: true,
      ipMasq: true,
      capabilities: { ips: true, mac: true },
      ipam: { type: "host-local", ranges: [[{ subnet: "10.77.2.0/24" }]] },
    },
    { type: "portmap", capabilities: { portMappings: true } },
  ]);
  // A link's name has at most 15 bytes.
  const { json: long } = await callDriver(machine, ["create"], bareNetwork({ name: "a-name-of-twenty-one" }));
  expect(long.error).toContain('"bridge":"a-name-of-twe0"');
  await writeConflist(machine, list);
  const env = { NETCONFPATH: CONFIGS };
  expect(await machine.run([PATCHBAY, "lint"], { env })).toEqual({ code: 0, stdout: "", stderr: "" });
  const network = await DriverNetwork.create(machine, { options: { conflist: "pod-net" } });
  const wanted = { ips: ["10.77.2.9"], mac: "02:00:00:00:00:09", ports: [port(8080, 80)] };
  await network.once(await machine.container("c1"), wanted);
});

const twoIps: Wanted = { ips: ["10.7.0.5", "10.7.0.6"] };
const attachments: [given: Partial<PodmanNetwork>, wanted: Wanted, ...says: string[]][] = [
  [{ options: { conflist: "gone" } }, {}, "option conflist=gone", CONFIGS, "web"],
  [{ options: { conflist: "web" } }, { ports: [port(8080, 80)] }, "8080:80/tcp", "portmap", "web.conflist"],
  [{ options: { conflist: "web" } }, twoIps, "10.7.0.5, 10.7.0.6", '"capabilities":{"ips":true}'],
  [{ options: { conflist: "web" } }, { mac: "0a:58" }, 'static_mac "0a:58"'],
  [{ options: { conflist: "web" } }, { ips: ["10.7.0.5;MAC=1"] }, "10.7.0.5;MAC=1"],
  [{ options: { conflist: "web" } }, { ips: ["10.99.0.5"] }, "10.99.0.5"],
  [own, { ips: ["10.99.0.5"] }, "10.99.0.5"],
  [own, { ips: ["nine"] }, "nine"],
  [own, { ips: ["10.8.0.5"], ports: [port(65535, 80, { range: 2 })] }, "65535:80", "range 2"],
  [own, { ips: ["10.8.0.5"], ports: [port(8080, 80, { protocol: "dccp" })] }, "dccp"],
  [own, { ips: ["10.8.0.5"], ports: [port(8080, 80, { host_ip: "abcd" })] }, "abcd"],
  [own, { ips: ["10.8.0.5"], netnsPath: "/run/netns/none" }, "/run/netns/none"],
  [own, { ips: ["10.8.0.5"], containerId: "../x" }, "../x"],
  [own, { ips: ["10.8.0.5"], ifName: "eth0/x" }, "interface name contains /"],
];

test.each(attachments)("setup refuses %j %j", async (given, wanted, ...says) => {
  const net = DriverNetwork.written(machine, given), words = ["setup", wanted.netnsPath ?? container.netnsPath];
  const error = await refusal(words, net.document(container, wanted));
  for (const part of says) expect(error).toContain(part);
});

test("documents of another form are refused, with the key", async () => {
  const path = container.netnsPath, good = DriverNetwork.written(machine, own).document(container);
  for (const verb of ["create", "setup", "teardown"]) {
    expect(await refusal([verb, path], "")).toContain("unexpected end of JSON input");
    expect(await refusal([verb, path], "[]")).toContain("must be an object");
  }
  expect(await refusal(["create"], { ...bareNetwork(), ipv6_enabled: "no" })).toContain('"ipv6_enabled"');
  expect(await refusal(["create"], { name: "n" })).toContain("is missing");
  // What netavark reads itself, with all networks of a container.
  const { network: _network, ...whole } = good;
  expect(await refusal(["setup", path], { ...whole, networks: {}, network_info: {} })).toContain(
    '"network" is missing',
  );
  expect(await refusal(["setup", path], { ...good, port_mappings: [{ host_port: "80" }] })).toContain(
    "port_mappings",
  );
  const options = { interface_name: "eth0", options: { host_interface_name: "x0" } };
  expect(await refusal(["setup", path], { ...good, network_options: options })).toContain("host_interface_name=x0");
});

test("teardown makes no paths of hostile names, and succeeds for what was never there", async () => {
  await machine.sh("echo '{}' >/var/lib/cni/x-id-c1-eth0; mkdir -p /var/lib/cni/results");
  const hostile: Wanted[] = [
    { network: { options: { conflist: "../x" } } },
    { network: { name: "../x", options: {} } },
    { containerId: "../id" },
    { ifName: "../eth0" },
  ];
  const net = DriverNetwork.written(machine, own);
  for (const wanted of hostile) {
    expect(await refusal(["teardown", container.netnsPath], net.document(container, wanted))).toMatch(
      /name|containerID/,
    );
  }
  expect(await machine.sh("rm -v /var/lib/cni/x-id-c1-eth0")).toContain("removed");
  for (const given of [own, { options: { conflist: "gone" } }, { options: { plugins: "nothing" } }]) {
    const { code, stdout } = await DriverNetwork.written(machine, given).call("teardown", container);
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  }
});

test("verbs: what is not one, and one without its path", async () => {
  expect(await refusal(["setup"], "{}")).toBe("netns path argument is missing");
  expect(await refusal(["teardown"], "{}")).toBe("netns path argument is missing");
  const directory = mkdtempSync(`${tmpdir()}/drivers-`);
  try {
    symlinkSync(PATCHBAY, `${directory}/cni`);
    const driver = (...words: string[]) => machine.run([`${directory}/cni`, ...words]);
    expect(await driver("update")).toMatchObject({ code: 1, stdout: '{"error":"unknown subcommand: update"}\n' });
    const { code, stdout } = await driver("info");
    expect({ code, ...JSON.parse(stdout) }).toEqual({ code: 0, version, api_version: "1.0.0" });
    expect((await driver("version")).code).toBe(0);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("nothing of all that is left", async () => {
  expect(await leftSince(moment, machine)).toEqual([]);
});
