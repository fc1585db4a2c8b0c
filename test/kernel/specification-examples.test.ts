/** The three example networks of CNI specification 0.3.1, as they stand in it but for the comments. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Running } from "../support/dhcp/running.ts";
import { lacks } from "../support/kernel-features.ts";
import { isListening } from "../support/listening.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type OpenVswitch, startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { ping } from "../support/traffic.ts";

const examples = {
  dbnet: `{
  "cniVersion": "0.3.1",
  "name": "dbnet",
  "type": "bridge",
  "bridge": "cni0",
  "ipam": {
    "type": "host-local",
    "subnet": "10.1.0.0/16",
    "gateway": "10.1.0.1"
  },
  "dns": {
    "nameservers": [ "10.1.0.1" ]
  }
}`,
  pci: `{
  "cniVersion": "0.3.1",
  "name": "pci",
  "type": "ovs",
  "bridge": "ovs0",
  "vxlanID": 42,
  "ipam": {
    "type": "dhcp",
    "routes": [ { "dst": "10.3.0.0/16" }, { "dst": "10.4.0.0/16" } ]
  },
  "args": {
    "labels" : {
        "appVersion" : "1.0"
    }
  }
}`,
  wan: `{
  "cniVersion": "0.3.1",
  "name": "wan",
  "type": "macvlan",
  "ipam": {
    "type": "dhcp",
    "routes": [ { "dst": "10.0.0.0/8", "gw": "10.0.0.1" } ]
  },
  "dns": {
    "nameservers": [ "10.0.0.1" ]
  }
}`,
};

/** The card that the default route leads to, behind it 10.0.0.1; and a bridge of Open vSwitch with a tunnel for network 42. */
const setUp = `
  mkdir -p /run/networks
  ip link add eth1 type veth peer name wire
  ip link set wire up; ip link set eth1 up
  ip address add 192.0.2.2/24 dev eth1
  ip route add default via 192.0.2.1 dev eth1
  ip address add 10.0.0.1/24 dev wire
  ip address add 10.50.0.1/24 dev ovs0
  ip link set ovs0 up
`;

let machine: Machine, ovs: OpenVswitch;
const folder = mkdtempSync(join(tmpdir(), "patchbay-examples-")), services = new AsyncDisposableStack();

beforeAll(async () => {
  machine = services.use(await openMachine());
  ovs = services.use(await startOpenVswitch(machine));
  await ovs.addBridge("ovs0");
  const tunnel = ["type=vxlan", "options:remote_ip=198.51.100.9", "options:key=42"];
  await ovs.vsctl("add-port", "ovs0", "to-peer", "--", "set", "interface", "to-peer", ...tunnel);
  await machine.sh(setUp);
  for (const [name, text] of Object.entries(examples)) {
    await machine.sh(`cat >/run/networks/${name}.conf <<'END'\n${text}\nEND`);
  }
  const start = (command: string[]) => services.use(Running.start({ machine }, command, { log: `${folder}/log` }));
  await serve(
    start,
    "ovs0",
    "10.50.0.100,10.50.0.120",
    "--dhcp-option=121,10.3.0.0/16,10.50.0.77,0.0.0.0/0,10.50.0.1",
  );
  await serve(start, "wire", "10.0.0.100,10.0.0.120", "--dhcp-option=3,10.0.0.1");
  const service = start([PATCHBAY, "dhcp"]);
  await service.until(() => isListening(machine, "/run/cni/dhcp.sock"));
});

afterAll(async () => {
  await services.disposeAsync();
  rmSync(folder, { recursive: true });
});

async function serve(start: (command: string[]) => Running, link: string, range: string, option: string) {
  const files = [`--dhcp-leasefile=${folder}/${link}-leases`, `--pid-file=${folder}/${link}-pid`];
  const server = ["dnsmasq", "-k", "-C", "/dev/null", "-p0", "-i", link, "--bind-interfaces", "--no-ping"];
  const serving = start([...server, `--dhcp-range=${range},1h`, option, "--user=root", ...files]);
  await serving.until(() => serving.hasBound(67));
}

async function patchbay(command: string, name: string, { netnsPath }: Container) {
  const outcome = await machine.run([PATCHBAY, command, name, netnsPath], { env: { NETCONFPATH: "/run/networks" } });
  expect(outcome).toMatchObject({ code: 0 });
  return outcome.stdout === "" ? undefined : JSON.parse(outcome.stdout);
}

/** Version 0.3.1 has no CHECK. */
async function isAsMade(): Promise<void> {
  const outcome = await machine.run([PATCHBAY, "inspect"], { env: { NETCONFPATH: "/run/networks" } });
  expect(outcome).toMatchObject({ code: 0, stderr: "" });
}

async function routesIn(container: Container): Promise<string[]> {
  const routes = JSON.parse(await machine.sh("ip -j route show dev eth0", { in: container }));
  return routes.map(({ dst, gateway }: { dst: string; gateway?: string }) => `${dst} ${gateway ?? "on link"}`).sort();
}

test("dbnet: a bridge and a subnet", async () => {
  const container = await machine.container();
  const { ips, dns, interfaces } = await patchbay("add", "dbnet", container);
  expect(ips).toEqual([{ version: "4", address: "10.1.0.2/16", gateway: "10.1.0.1", interface: 2 }]);
  expect(dns).toEqual({ nameservers: ["10.1.0.1"] });
  expect(interfaces[0].name).toBe("cni0");
  await isAsMade();
  await patchbay("del", "dbnet", container);
});

test("pci: Open vSwitch, a virtual network, a lease of DHCP with routes of the configuration", async () => {
  const container = await machine.container(), rows = await ovs.rows();
  const { ips: [{ address, ...ip }], routes, interfaces } = await patchbay("add", "pci", container);
  expect(address).toMatch(/^10\.50\.0\.1[0-2][0-9]\/24$/);
  expect(ip).toMatchObject({ interface: 1 });
  expect(routes).toEqual(expect.arrayContaining([
    { dst: "10.3.0.0/16", gw: "10.50.0.1" },
    { dst: "10.4.0.0/16", gw: "10.50.0.1" },
    { dst: "0.0.0.0/0", gw: "10.50.0.1" },
  ]));
  expect(await routesIn(container)).toEqual([
    "10.3.0.0/16 10.50.0.1",
    "10.4.0.0/16 10.50.0.1",
    "10.50.0.0/24 on link",
    "default 10.50.0.1",
  ]);
  expect(await ovs.portsOf("ovs0")).toContain(interfaces[0].name);
  expect(await ping(machine, container, "10.50.0.1")).toBe(true);
  await isAsMade();
  await patchbay("del", "pci", container);
  expect(await ovs.rows()).toEqual(rows);
});

test.skipIf(lacks("macvlan links"))("wan: a card, a lease of DHCP with a route of the configuration", async () => {
  const container = await machine.container();
  const { ips: [{ address }], dns, routes } = await patchbay("add", "wan", container);
  expect(address).toMatch(/^10\.0\.0\.1[0-2][0-9]\/24$/);
  expect(dns).toEqual({ nameservers: ["10.0.0.1"] });
  expect(routes).toContainEqual({ dst: "10.0.0.0/8", gw: "10.0.0.1" });
  expect(await routesIn(container)).toEqual(["10.0.0.0/24 on link", "10.0.0.0/8 10.0.0.1", "default 10.0.0.1"]);
  expect(await ping(machine, container, "10.0.0.1")).toBe(true);
  await isAsMade();
  await patchbay("del", "wan", container);
});
