/**
 * What plugins get in networks with our driver, also by exec: CNI_ARGS and capability arguments as podman itself sends them
 * to CNI, and DEL with the arguments of ADD.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../../support/machine.ts";
import { patchbayPlugins } from "../../support/plugins.ts";
import { DriverNetwork, port, writeConflist } from "../../support/podman-driver.ts";

/** A plugin that records each call, and adds a name server. */
const foreign = `#!/bin/sh
cat >/run/told/stdin.$CNI_COMMAND
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_ARGS" >>/run/told/calls
[ -e /run/told/hang.$CNI_COMMAND ] && { echo $$ >/run/told/pid; exec sleep 1000; }
[ -e /run/told/fail.$CNI_COMMAND ] && { echo '{"code":100,"msg":"it does not want to"}'; exit 1; }
[ $CNI_COMMAND = ADD ] && cat /run/told/answer
exit 0
`;
const path = "/run/plugins";

let machine: Machine, container: Container;
beforeEach(async () => {
  machine = await openMachine();
  container = await machine.container("c1");
  await machine.sh(`mkdir -p /run/told ${path}; cat >${path}/foreign; chmod 755 ${path}/foreign`, { stdin: foreign });
  await machine.sh(`cp -P ${patchbayPlugins()}/* ${path}/`);
  await answer({ dns: { nameservers: ["9.9.9.9", "fe80::1%eth0", "nine"], domain: "one.example" } });
});
afterEach(async () => await machine[Symbol.asyncDispose]());

const ipam = { type: "host-local", ranges: [[{ subnet: "10.7.0.0/24" }]] };
const bridge = { type: "bridge", bridge: "web0", isGateway: true, ipam, capabilities: { ips: true } };

async function answer(more: Record<string, unknown>): Promise<void> {
  await machine.sh("cat >/run/told/answer", { stdin: JSON.stringify({ cniVersion: "1.0.0", ...more }) });
}

async function told(command: string): Promise<Record<string, unknown>> {
  return JSON.parse(await machine.sh(`cat /run/told/stdin.${command}`));
}

async function calls(): Promise<string[]> {
  return (await machine.sh("cat /run/told/calls; rm /run/told/calls")).trimEnd().split("\n");
}

const capabilities = { portMappings: true, ips: true, mac: true, aliases: true, dns: true, bandwidth: true };

test("a foreign plugin is told what podman knows, at ADD and at DEL", async () => {
  await writeConflist(machine, { name: "web", plugins: [bridge, { type: "foreign", capabilities }] });
  const net = await DriverNetwork.create(machine, { options: { conflist: "web", pluginPath: path } });
  const wanted = {
    ips: ["10.7.0.5"],
    mac: "0A:58:0A:07:00:05",
    ports: [port(53, 5300, { range: 2, protocol: "tcp,udp", host_ip: "127.0.0.1" })],
    aliases: ["one", "two"],
    network: { network_dns_servers: ["10.7.0.53"] },
  };
  const { code, json, stderr } = await net.call("setup", container, wanted);
  // The foreign plugin's answer is the chain's, and it has left out the interface.
  expect({ code, json }).toEqual({
    code: 0,
    json: {
      dns_search_domains: ["one.example"],
      dns_server_ips: ["9.9.9.9"],
      interfaces: { eth0: { mac_address: expect.stringMatching(/^(..:){5}..$/), subnets: [] } },
    },
  });
  for (const part of ['"nine"', "10.7.0.5", "0a:58:0a:07:00:05"]) expect(stderr).toContain(part);
  const portMappings = ["tcp", "udp"].flatMap((protocol) =>
    [0, 1].map((index) => ({ hostPort: 53 + index, containerPort: 5300 + index, protocol, hostIP: "127.0.0.1" }))
  );
  const runtimeConfig = {
    portMappings,
    ips: ["10.7.0.5"],
    mac: "0a:58:0a:07:00:05",
    aliases: { web: ["one", "two"] },
    dns: { servers: ["10.7.0.53"] },
  };
  expect(await told("ADD")).toMatchObject({ runtimeConfig, prevResult: { ips: [{ address: "10.7.0.5/24" }] } });
  // What podman sends then does not count.
  await net.teardown(container);
  expect(await told("DEL")).toMatchObject({ runtimeConfig, prevResult: { dns: { domain: "one.example" } } });
  const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=name-c1;K8S_POD_NAME=name-c1";
  expect(await calls()).toEqual([`ADD id-c1 eth0 ${args}`, `DEL id-c1 eth0 ${args}`]);
});

test("without capabilities, MAC and address go by CNI_ARGS", async () => {
  await writeConflist(machine, { name: "web", plugins: [{ type: "foreign" }] });
  const net = await DriverNetwork.create(machine, { options: { conflist: "web" } }, { CNI_PATH: path });
  await answer({
    interfaces: [{ name: "host0" }, { name: "eth0", mac: "0a:58:0a:07:00:05", sandbox: container.netnsPath }],
    ips: [{ interface: 1, address: "10.7.0.5/24", gateway: "10.7.0.1" }, { address: "fd07::5/64" }],
  });
  expect((await net.setup(container, { ips: ["10.7.0.5"], mac: "0a-58-0a-07-00-05" })).interfaces).toEqual({
    eth0: {
      mac_address: "0a:58:0a:07:00:05",
      subnets: [{ gateway: "10.7.0.1", ipnet: "10.7.0.5/24" }, { gateway: null, ipnet: "fd07::5/64" }],
    },
  });
  const [added] = await calls();
  expect(added).toEndWith(";MAC=0a:58:0a:07:00:05;IP=10.7.0.5");
});

test("setup that fails in a foreign plugin is undone, and one that was killed there at teardown", async () => {
  await writeConflist(machine, { name: "web", plugins: [bridge, { type: "foreign" }] });
  const net = await DriverNetwork.create(machine, { options: { conflist: "web", pluginPath: path } });
  await net.call("setup", container);
  await net.teardown(container);
  await calls();
  const moment = await quietMoment(machine), except = /file \/run\/told\//;
  await machine.sh("touch /run/told/fail.ADD");
  const { code, json } = await net.call("setup", container);
  expect({ code, json }).toEqual({ code: 1, json: { error: expect.stringContaining("it does not want to") } });
  expect((await calls()).map((call) => call.split(" ")[0])).toEqual(["ADD", "DEL"]);
  expect(await leftSince(moment, machine, except)).toEqual([]);

  await machine.sh("rm /run/told/fail.ADD; touch /run/told/hang.ADD");
  const document = JSON.stringify(net.document(container)), env = ["NETCONFPATH=/run/net.d"];
  const child = machine.start(["env", ...env, `${patchbayPlugins()}/../patchbay`, "setup", container.netnsPath]);
  child.stdin.write(document);
  await child.stdin.end();
  await machine.sh("until [ -s /run/told/pid ]; do sleep 0.01; done");
  child.kill("SIGKILL");
  await child.exited;
  await machine.sh("kill $(cat /run/told/pid)");
  // Nothing but the network of today knows of the foreign plugin.
  await net.teardown(container);
  expect((await calls()).map((call) => call.split(" ")[0])).toEqual(["ADD", "DEL"]);
  expect(await leftSince(moment, machine, except)).toEqual([]);
});
