/**
 * Attaches, checks and detaches each network in examples/ with `patchbay`, on a machine that has what it needs. Nothing
 * is left afterwards. README.md names them all.
 */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import { overlap, parsePrefix } from "../../src/net/address.ts";
import { pluginNames } from "../../src/plugins/table.ts";
import { Running } from "../support/dhcp/running.ts";
import { type Feature, lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { isListening } from "../support/listening.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { startOpenVswitch } from "../support/open-vswitch.ts";
import { PATCHBAY } from "../support/plugins.ts";
import { serving } from "../support/served-pool.ts";

const root = resolve(import.meta.dir, "../..");
const examples = `${root}/examples`;

const needs: Record<string, Feature> = {
  dhcp: "macvlan links",
  dummy: "dummy links",
  ipvlan: "ipvlan links",
  macvlan: "macvlan links",
  "patchbay-cluster": "macvlan links",
  sbr: "macvlan links",
  vlan: "VLAN links",
  vrf: "VRF links",
};

/** A network card, what flanneld writes, and what an agent does. */
const machineFor: Record<string, string> = {
  "patchbay-cluster": serving(),
  card: `
    ip link add eth1 type veth peer name wire
    echo 1 >/proc/sys/net/ipv6/conf/wire/disable_ipv6
    echo 1 >/proc/sys/net/ipv6/conf/eth1/disable_ipv6
    ip link set wire up`,
  flannel: `
    mkdir -p /run/flannel
    printf 'FLANNEL_NETWORK=10.244.0.0/16\\nFLANNEL_SUBNET=10.244.1.1/24\\n' >/run/flannel/subnet.env
    printf 'FLANNEL_MTU=1450\\nFLANNEL_IPMASQ=true\\n' >>/run/flannel/subnet.env`,
};

/** The DHCP service with a server for it, or Open vSwitch. Others need neither. */
async function servicesFor(name: string, machine: Machine): Promise<AsyncDisposableStack> {
  const services = new AsyncDisposableStack();
  if (name === "ovs") await services.use(await startOpenVswitch(machine)).addBridge("ovs0");
  if (name !== "dhcp") return services;
  const folder = mkdtempSync(join(tmpdir(), "patchbay-example-"));
  services.defer(() => rmSync(folder, { recursive: true }));
  await machine.sh("ip address add 192.168.77.1/24 dev wire");
  const range = "--dhcp-range=192.168.77.100,192.168.77.120,1h", files = [`--dhcp-leasefile=${folder}/leases`];
  const server = ["dnsmasq", "-k", "-C", "/dev/null", "-p0", "-i", "wire", "--bind-interfaces", "--no-ping", range];
  const start = (command: string[]) => services.use(Running.start({ machine }, command, { log: `${folder}/log` }));
  const serving = start([...server, ...files, "--user=root", `--pid-file=${folder}/pid`]);
  await serving.until(() => serving.hasBound(67));
  const service = start([PATCHBAY, "dhcp"]);
  await service.until(() => isListening(machine, "/run/cni/dhcp.sock"));
  return services;
}

/** What an engine would pass as capability arguments. */
const capabilityArgs = {
  portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }],
  mac: "02:00:00:00:00:07",
};

/** podman's own, and those that it takes for further networks. */
const PODMANS = ["10.88.0.0/16", "10.89.0.0/16"];
const recipes = readdirSync(`${root}/docs/recipes`).map((name) => `docs/recipes/${name}`);
const pages = ["README.md", "docs/ledger.md", "docs/start.md", "demo/demo.ts", ...recipes];

test("the examples, the README, the pages and the demo have subnets of their own, none of them podman's", () => {
  const files = readdirSync(examples, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".conflist")
  );
  const found = [...files.map((name) => `examples/${name}`), ...pages].flatMap((file) => {
    const text = readFileSync(`${root}/${file}`, "utf8");
    // Pages also show what addresses came of a subnet.
    const isPage = file.endsWith(".md");
    const subnets = text.matchAll(isPage ? /"subnet": *"([^"]+)"/g : /"?(?:subnet|address)"?: *"([^"]+\/[0-9]+)"/g);
    return [...new Set([...subnets].map(([, subnet]) => subnet!))].map((subnet) => ({ file, subnet }));
  });
  expect(new Set(found.map(({ file }) => file)).size).toBeGreaterThan(18);
  const all = [...found, ...PODMANS.map((subnet) => ({ file: "podman", subnet }))];
  const clashes = all.flatMap((one, index) =>
    all.slice(index + 1).filter((other) => overlap(parsePrefix(one.subnet)!, parsePrefix(other.subnet)!))
      .map((other) => `${one.subnet} of ${one.file} and ${other.subnet} of ${other.file}`)
  );
  expect(clashes).toEqual([]);
});

test("the examples' bridges are of one network each", () => {
  const bridges = readdirSync(examples, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".conflist"))
    .flatMap((name) => /"bridge": "([^"]+)"/.exec(readFileSync(`${examples}/${name}`, "utf8"))?.[1] ?? []);
  expect(bridges).toEqual([...new Set(bridges)]);
});

describe.each(pluginNames.map((name) => ({ name })))("$name", ({ name }) => {
  test.skipIf(lacks(needs[name]))(`the example of ${name} does what it says`, async () => {
    const text = readFileSync(`${examples}/${name}.conflist`, "utf8");
    await using machine = await openMachine();
    if (text.includes(`"eth1"`)) await machine.sh(machineFor.card!);
    if (name in machineFor) await machine.sh(machineFor[name]!);
    if (text.includes(`"master"`)) await machine.sh("ip link set eth1 up");
    await using _services = await servicesFor(name, machine);
    const container = await machine.container("c1");
    const env = { NETCONFPATH: examples, CAP_ARGS: JSON.stringify(capabilityArgs) };
    const run = async (command: string) => {
      const call = [PATCHBAY, command, `${name}-example`, container.netnsPath];
      const { code, stdout, stderr } = await machine.run(call, { env });
      expect({ command, code, stdout, stderr }).toMatchObject({ command, code: 0 });
      return stdout;
    };
    const attach = async () => {
      const result = JSON.parse(await run("add"));
      expect(result.interfaces.some(({ sandbox }: { sandbox?: string }) => sandbox === container.netnsPath)).toBe(
        true,
      );
      if (text.includes(`"ipam"`)) expect(result.ips.length).toBeGreaterThan(0);
      await run("check");
    };
    expect(await run("plan")).not.toBe("");
    await attach();
    await run("del");
    const moment = await quietMoment(machine);
    await attach();
    for (let count = 0; count < 2; count++) await run("del");
    expect(await leftSince(moment, machine, /last_reserved_ip|dhcp\/lock/)).toEqual([]);
  });

  test(`the JSON Schema of ${name} takes the example, and nothing like it that is wrong`, async () => {
    const { cniVersion, name: network, plugins } = await json(`examples/${name}.conflist`);
    const takes = await judge(`schemas/${name}.json`);
    const ours = plugins.find(({ type, ipam }: Conf) => type === name || ipam?.type === name);
    const whole = { cniVersion, name: network, ...ours };
    expect(takes(whole)).toBe(true);
    for (const key of ["cniVersion", "name", "type"]) expect(takes({ ...whole, [key]: 5 })).toBe(false);
    for (const key of ["cniVersion", "name"]) expect(takes({ ...whole, [key]: undefined })).toBe(false);
  });

  test(`README.md has an item for ${name}`, async () => {
    const readme = await Bun.file(`${root}/README.md`).text();
    // A command may have the plugin's name, too.
    const item = readme.split("## The plugins")[1]!.split(/^- /m).find((text) => text.startsWith(`\`${name}\`: `));
    expect(item).toContain(`(examples/${name}.conflist)`);
  });
});

interface Conf {
  type: string;
  ipam?: { type: string };
}

// deno-lint-ignore no-explicit-any
function json(path: string): Promise<any> {
  return Bun.file(`${root}/${path}`).json();
}

async function judge(path: string): Promise<(document: unknown) => boolean> {
  const schema = z.fromJSONSchema(await json(path));
  return (document) => schema.safeParse(JSON.parse(JSON.stringify(document))).success;
}
