/**
 * flannel delegates to another plugin, with a configuration made of subnet.env and its own. That configuration is
 * kept in a file while the attachment lasts, and DEL passes it on.
 *
 * Longer than 300 lines: tables of files, configurations and refusals, one row each.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { patchbayPlugins } from "../support/plugins.ts";
import { scriptPlugins } from "../support/script-plugins.ts";
import { ping } from "../support/traffic.ts";

const SUBNET_ENV = `
FLANNEL_NETWORK=10.244.0.0/16
FLANNEL_SUBNET=10.244.1.1/24
FLANNEL_IPV6_NETWORK=fd24::/48
FLANNEL_IPV6_SUBNET=fd24:0:0:1::1/64
FLANNEL_MTU=1450
FLANNEL_IPMASQ=true
`;
const FILE = "/var/lib/cni/flannel/ctr-c1";
const conf = { type: "flannel", delegate: { hairpinMode: true } };
const noPrevResult = { prevResult: undefined };

/** Shared or changed on purpose, and the link-local address of a bridge, which comes a second after its first port. */
const settling = /subnet\.env|last_reserved_ip|linklocal\(host\/cni0\)|"fe80::\/64","dev":"cni0"/;

async function withSubnets(text = SUBNET_ENV): Promise<Machine> {
  const machine = await openMachine();
  await machine.run(["sh", "-c", "mkdir -p /run/flannel; cat > /run/flannel/subnet.env"], { stdin: text });
  return machine;
}

/** One where an attachment has come and gone. */
async function stage(change: Record<string, unknown> = {}) {
  const machine = await withSubnets();
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, ...change });
  await net.add(container);
  await net.del(container);
  return { machine, net, container, moment: await quietMoment(machine) };
}

test("bridge does the work, with the subnets of the node", async () => {
  const { machine, net, container, moment } = await stage();
  await using _ = machine;
  const other = await machine.container("c2");
  const result = await net.add(container);
  expect(result.ips).toEqual([
    { address: expect.stringMatching(/^10\.244\.1\.\d+\/24$/), gateway: "10.244.1.1", interface: 2 },
    { address: expect.stringMatching(/^fd24:0:0:1::\d+\/64$/), gateway: "fd24:0:0:1::1", interface: 2 },
  ]);
  expect(result.routes).toEqual([{ dst: "10.244.0.0/16" }, { dst: "fd24::/48" }]);
  expect(await machine.sh(`stat -c '%a %U' ${FILE}; stat -c %a /var/lib/cni/flannel`)).toBe("600 root\n700\n");
  // Word for word what the reference plugin writes, whose DEL reads it.
  expect(await machine.sh(`cat ${FILE}`)).toBe(
    `{"cniVersion":"1.1.0","hairpinMode":true,"ipMasq":false,` +
      `"ipam":{"ranges":[[{"subnet":"10.244.1.0/24"}],[{"subnet":"fd24:0:0:1::/64"}]],` +
      `"routes":[{"dst":"10.244.0.0/16"},{"dst":"fd24::/48"}],"type":"host-local"},` +
      `"isGateway":true,"mtu":1450,"name":"net","type":"bridge"}`,
  );
  expect(await machine.sh("cat /proc/sys/net/ipv6/conf/eth0/mtu; ip route show 10.244.0.0/16", { in: container }))
    .toMatch(/^1450\n10\.244\.0\.0\/16 via 10\.244\.1\.1/);
  await net.add(other);
  const address = result.ips[0].address.split("/")[0];
  expect(await ping(machine, other, address)).toBe(true);
  await net.check(container);
  await net.del(other);
  await machine.removeContainer(other);
  for (let count = 0; count < 2; count++) await net.del(container);
  expect(await leftSince(moment, machine, settling)).toEqual([]);
});

interface Row {
  name: string;
  spoil?: string;
  conf?: Record<string, unknown>;
  env?: Record<string, string | undefined>;
}

const rows: Row[] = [
  { name: "nothing spoiled" },
  { name: "no prevResult", conf: noPrevResult },
  { name: "no CNI_NETNS", env: { CNI_NETNS: undefined } },
  { name: "subnet.env gone", spoil: "rm /run/flannel/subnet.env" },
  { name: "other subnets", spoil: "sed -i s/10.244.1/10.244.7/ /run/flannel/subnet.env" },
  { name: "another delegate configured", conf: { delegate: { type: "loopback" } } },
  { name: "a delegate that ADD refuses", conf: { delegate: { name: "x" } } },
  { name: "its file gone", spoil: `rm ${FILE}` },
  {
    name: "its file cut off",
    spoil: `truncate -s 20 ${FILE}`,
  },
  { name: "ledgers lost", spoil: "rm -r /run/patchbay" },
  {
    name: "ledgers lost, no prevResult, subnet.env gone",
    spoil: "rm -r /run/patchbay /run/flannel",
    conf: noPrevResult,
  },
];

test.each(rows)("DEL leaves nothing: $name", async ({ spoil, conf, env }) => {
  const { machine, net, container, moment } = await stage();
  await using _ = machine;
  await net.add(container);
  if (spoil !== undefined) await machine.sh(spoil);
  for (let count = 0; count < 2; count++) await net.del(container, { conf, env });
  expect(await leftSince(moment, machine, settling)).toEqual([]);
});

test("a container in two networks keeps both until it leaves each", async () => {
  const { machine, net, container, moment } = await stage();
  await using _ = machine;
  const second = network(machine, { ...conf, name: "second", delegate: { bridge: "br2" } });
  await second.add(container, { ifName: "net1" });
  await second.del(container, { ifName: "net1" });
  await machine.sh("ip link del br2");
  await net.add(container);
  await second.add(container, { ifName: "net1" });
  await net.del(container);
  expect(await machine.sh(`cat ${FILE}`)).toContain(`"name":"second"`);
  await second.check(container, { ifName: "net1" });
  await second.del(container, { ifName: "net1" });
  await machine.sh("ip link del br2");
  expect(await leftSince(moment, machine, new RegExp(`${settling.source}|networks/second|ipv6/conf/br2`))).toEqual(
    [],
  );
});

test("an ADD that was a mistake, or failed on the way, takes nothing away that DEL needs", async () => {
  const { machine, net, container, moment } = await stage();
  await using _ = machine;
  await net.add(container);
  const again = await net.call("ADD", container);
  expect(again.json.msg).toContain("already exists");
  await net.check(container);
  await machine.sh("rm -r /run/patchbay");
  await net.check(container);
  await net.del(container);
  const refused = { ipam: { routes: [{ dst: "10.0.0.0/8", gw: "172.31.0.1" }] } };
  expect((await net.call("ADD", container, { conf: refused })).code).toBe(1);
  await net.del(container);
  expect(await leftSince(moment, machine, settling)).toEqual([]);
});

test("GC takes away what is not valid, with and without ledger", async () => {
  const { machine, net, container, moment } = await stage();
  await using _ = machine;
  await net.add(container);
  await net.gc([container]);
  await net.check(container);
  await net.gc([]);
  expect(await leftSince(moment, machine, settling)).toEqual([]);
  await net.add(container);
  await machine.sh(
    `mkdir ${FILE}.d; rm -r /run/patchbay; ip netns del c1; ip netns add c1; echo '{"name":"other"}' > ${FILE}-other`,
  );
  await net.gc([]);
  expect(await machine.sh("ls /var/lib/cni/flannel; ls -I 'last*' /var/lib/cni/networks/net")).toBe(
    "ctr-c1-other\nctr-c1.d\n",
  );
});

test("STATUS tells what flanneld has not done yet, and asks the plugin that does the work", async () => {
  await using machine = await withSubnets();
  expect((await network(machine, conf).call("STATUS", undefined)).code).toBe(0);
  const delegate = { delegate: { type: "host-device", pciBusID: "0000:ff:1f.7" } };
  expect((await network(machine, { ...conf, ...delegate }).call("STATUS", undefined)).json).toMatchObject({
    code: 50,
  });
  await machine.sh("rm /run/flannel/subnet.env");
  expect((await network(machine, conf).call("STATUS", undefined)).json).toMatchObject({
    code: 50,
    msg: "failed to load flannel 'subnet.env' file: open /run/flannel/subnet.env: no such file or directory. " +
      "Check the flannel pod log for this node.",
  });
});

test("CHECK finds what the other plugin finds, and that the file is gone", async () => {
  const { machine, net, container } = await stage();
  await using _ = machine;
  await net.add(container);
  await machine.sh("rm -r /run/patchbay");
  await net.check(container);
  await machine.sh("ip -4 address flush dev eth0", { in: container });
  expect((await net.call("CHECK", container)).json.msg).toContain("10.244.1.");
  await net.del(container);
  await net.add(container);
  await machine.sh(`rm ${FILE}`);
  expect((await net.call("CHECK", container)).json.msg).toContain(FILE);
});

const node = "FLANNEL_NETWORK=10.244.0.0/16\nFLANNEL_SUBNET=10.244.1.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n";
const without = (key: string) => node.replace(new RegExp(`^${key}.*\n`, "m"), "");

const refused: { name: string; env?: string; conf?: Record<string, unknown>; code: number; says: string }[] = [
  {
    name: "no networks",
    env: without("FLANNEL_NETWORK"),
    code: 6,
    says: "/run/flannel/subnet.env is missing FLANNEL_NETWORK, FLANNEL_IPV6_NETWORK",
  },
  { name: "no subnet", env: without("FLANNEL_SUBNET"), code: 6, says: "missing FLANNEL_SUBNET, FLANNEL_IPV6_SUBNET" },
  { name: "no MTU, no IPMASQ", env: node.slice(0, 60), code: 6, says: "is missing FLANNEL_MTU, FLANNEL_IPMASQ" },
  {
    name: "no value",
    env: node.replace("FLANNEL_MTU=1450", "FLANNEL_MTU"),
    code: 6,
    says: `"FLANNEL_MTU" has no value`,
  },
  { name: "no prefix", env: node.replace("10.244.1.1/24", "10.244.1.1"), code: 6, says: "invalid CIDR address" },
  { name: "no number", env: node.replace("1450", "big"), code: 6, says: `FLANNEL_MTU "big" is not an MTU` },
  { name: "no file", conf: { subnetFile: "/run/none" }, code: 11, says: "open /run/none: no such file or directory" },
  {
    name: "a name for the delegate",
    conf: { delegate: { name: "x" } },
    code: 7,
    says: "'delegate' dictionary must not have 'name' field, it'll be set by flannel",
  },
  { name: "ipam for the delegate", conf: { delegate: { ipam: {} } }, code: 7, says: "must not have 'ipam' field" },
  { name: "a type that is none", conf: { delegate: { type: 5 } }, code: 7, says: "must have (string) 'type' field" },
  { name: "itself", conf: { delegate: { type: "flannel" } }, code: 7, says: "cannot be flannel itself" },
  { name: "a file for dataDir", conf: { dataDir: "/run/flannel/subnet.env" }, code: 5, says: "not a directory" },
  { name: "no such delegate", conf: { delegate: { type: "none" } }, code: 999, says: `failed to find plugin "none"` },
  { name: "routes that are none", conf: { ipam: { routes: {} } }, code: 7, says: `"ipam.routes" must be a list` },
  { name: "a delegate that is none", conf: { delegate: "bridge" }, code: 7, says: `"delegate" must be an object` },
];

test("what cannot be worked with is refused, and nothing changes", async () => {
  await using machine = await withSubnets(node);
  const container = await machine.container();
  const moment = await quietMoment(machine);
  for (const { name, env = node, conf: change, code, says } of refused) {
    await machine.run(["sh", "-c", "cat > /run/flannel/subnet.env"], { stdin: env });
    const { json } = await network(machine, { ...conf, ...change }).call("ADD", container);
    expect({ name, code: json.code, msg: json.msg }).toEqual({ name, code, msg: expect.stringContaining(says) });
    const del = await network(machine, { ...conf, ...change, delegate: {} }).call("DEL", container);
    expect([name, del.code, del.stdout]).toEqual([name, 0, ""]);
  }
  expect(await leftSince(moment, machine)).toEqual([]);
});

/** With a plugin that only writes down what it gets. */
async function recorded(env: string, change: Record<string, unknown>) {
  using plugins = scriptPlugins();
  plugins.plugin("recorder", { ADD: { stdout: { cniVersion: "1.0.0", ips: [{ address: "10.0.0.2/24" }] } } });
  await using machine = await withSubnets(env);
  const container = await machine.container("c1");
  const delegate = { type: "recorder", ...change.delegate as object };
  const net = network(machine, { ...conf, cniVersion: "1.0.0", ...change, delegate });
  const use = { env: { CNI_PATH: `${plugins.directory}/bin:${patchbayPlugins()}` } };
  await net.add(container, use);
  const given = plugins.stdin("ADD recorder");
  await net.del(container, use);
  const { prevResult: _, ...again } = plugins.stdin("DEL recorder");
  expect(again).toEqual(given);
  expect(plugins.calls()).toEqual(["ADD recorder", "DEL recorder"]);
  return given;
}

test("what is configured stands before what flannel would say", async () => {
  const routes = [{ dst: "0.0.0.0/0", gw: "10.0.0.1" }];
  const given = await recorded(node.replace("IPMASQ=true", "IPMASQ=false") + "OTHER=1\nFLANNEL_ODD=2\n", {
    delegate: { mtu: 1400, isDefaultGateway: true, deep: { b: 1, a: [{ d: 1, c: 2 }] } },
    ipam: { type: "dhcp", ranges: "mine", routes, dataDir: "/run/x" },
    runtimeConfig: { mac: "0a:00:00:00:00:01" },
    prevResult: { cniVersion: "1.0.0" },
  });
  expect(given).toEqual({
    cniVersion: "1.0.0",
    name: "net",
    type: "recorder",
    ipMasq: true,
    mtu: 1400,
    isDefaultGateway: true,
    deep: { b: 1, a: [{ d: 1, c: 2 }] },
    ipam: {
      type: "dhcp",
      dataDir: "/run/x",
      ranges: [[{ subnet: "10.244.1.0/24" }]],
      routes: [...routes, { dst: "10.244.0.0/16" }],
    },
    runtimeConfig: { mac: "0a:00:00:00:00:01" },
  });
});

test("several networks are there once each, those of version 6 alone too", async () => {
  const env = node.replace("10.244.0.0/16", "10.244.0.0/16,10.96.0.0/12,10.244.0.0/16");
  expect((await recorded(env, {})).ipam).toEqual({
    type: "host-local",
    ranges: [[{ subnet: "10.244.1.0/24" }]],
    routes: [{ dst: "10.244.0.0/16" }, { dst: "10.96.0.0/12" }],
  });
  const only6 =
    "FLANNEL_IPV6_NETWORK=fd24::/48\nFLANNEL_IPV6_SUBNET=fd24::1/64\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=1\n";
  expect(await recorded(only6, {})).toMatchObject({
    ipMasq: true,
    ipam: { ranges: [[{ subnet: "fd24::/64" }]], routes: [{ dst: "fd24::/48" }] },
  });
});

test("DEL that the other plugin fails is kept for the next try; what was configured since is not looked at", async () => {
  using plugins = scriptPlugins();
  plugins.plugin("recorder", {
    ADD: { stdout: { cniVersion: "1.0.0" } },
    DEL: { stdout: { code: 11, msg: "not now" }, exit: 1 },
  });
  await using machine = await withSubnets(node);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, cniVersion: "1.0.0", delegate: { type: "recorder" } });
  const use = { env: { CNI_PATH: `${plugins.directory}/bin` } };
  await net.add(container, use);
  for (const lose of ["true", "rm -r /run/patchbay"]) {
    await machine.sh(lose);
    expect((await net.call("DEL", container, use)).json).toMatchObject({ code: 11, msg: "not now" });
    expect(await machine.sh(`cat ${FILE}`)).toContain(`"type":"recorder"`);
  }
  plugins.plugin("recorder", { DEL: {} });
  await net.del(container, { ...use, conf: { delegate: { type: "bridge" } } });
  expect((await machine.run(["test", "-e", FILE])).code).toBe(1);
  await net.del(container, use);
  expect(plugins.calls()).toEqual(["ADD recorder", "DEL recorder", "DEL recorder", "DEL recorder"]);
});

test("DEL takes away what the reference plugin left: its file, with what it was given then", async () => {
  using plugins = scriptPlugins();
  plugins.plugin("recorder");
  await using machine = await withSubnets(node);
  const container = await machine.container("c1");
  const net = network(machine, { ...conf, cniVersion: "1.0.0" });
  const kept = `{"cniVersion":"1.0.0","ipam":{"subnet":"10.9.0.0/24"},"mtu":1,"name":"net","type":"recorder"}`;
  const use = { env: { CNI_PATH: `${plugins.directory}/bin` } };
  for (
    const [text, stays] of [[kept, false], [kept.replace('"net"', '"other"'), true], ["", true], ["{", true]] as const
  ) {
    await machine.run(["sh", "-c", `mkdir -p -m 700 /var/lib/cni/flannel; cat > ${FILE}`], { stdin: text });
    await net.del(container, use);
    expect((await machine.run(["test", "-e", FILE])).code).toBe(stays ? 0 : 1);
  }
  expect(plugins.calls()).toEqual(["DEL recorder"]);
  expect(plugins.stdin("DEL recorder")).toEqual(JSON.parse(kept));
});
