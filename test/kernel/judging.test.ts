/**
 * Who judges a configuration: what ADD refuses, CHECK, STATUS and plan refuse too, in the same words; DEL and GC refuse
 * nothing, and nothing is left.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { PATCHBAY } from "../support/plugins.ts";

const ipam = { type: "static", addresses: [{ address: "10.1.0.2/24" }] };
const dummies = { interfaces: [{ name: "eth0", sandbox: "x" }], ips: [{ address: "10.1.0.2/24" }] };

const hostLocalWith = (ipam: object) => ({
  type: "host-local",
  ipam: { type: "host-local", subnet: "10.1.0.0/24", ...ipam },
});

/** `call`: what is wrong comes with the call, so STATUS cannot know. */
const refused: { conf: Record<string, unknown> & { type: string }; message: string; call?: true }[] = [
  {
    conf: { type: "bridge", hairpinMode: true, promiscMode: true },
    message: "cannot set hairpin mode and promiscuous",
  },
  { conf: { type: "bridge", vlanTrunk: [{ minID: 5 }] }, message: "minID and maxID should be configured" },
  { conf: { type: "bridge", runtimeConfig: { mac: "hello" } }, message: "address hello: invalid MAC", call: true },
  { conf: { type: "ptp" }, message: "no plugin name provided" },
  { conf: { type: "dummy" }, message: "dummy interface requires an IPAM configuration" },
  { conf: { type: "vlan", master: "m0", vlanId: 9999, ipam }, message: "invalid VLAN ID 9999" },
  { conf: { type: "macvlan", mode: "none", ipam }, message: 'unknown macvlan mode: "none"' },
  { conf: { type: "ipvlan", mode: "none", ipam }, message: 'unknown ipvlan mode: "none"' },
  { conf: { type: "tap", runtimeConfig: { mac: "hello" } }, message: "invalid args hello for MAC addr", call: true },
  { conf: { type: "host-device", ipam }, message: 'specify either "device", "hwaddr"', call: true },
  { conf: { type: "portmap", backend: "none" }, message: 'unrecognized backend "none"' },
  { conf: { type: "firewall", ingressPolicy: "none" }, message: "none" },
  { conf: { type: "sbr", table: 0 }, message: '"table": 0 is not a routing table' },
  { conf: { type: "vrf", vrfname: "" }, message: "expected to have a valid vrf name" },
  {
    conf: { type: "bandwidth", shapedSubnets: ["10.0.0.0/8"], unshapedSubnets: ["10.1.0.0/16"] },
    message: "cannot be both specified",
  },
  { conf: { type: "tuning", mac: "hello" }, message: "invalid args hello for MAC addr" },
  { conf: { type: "bandwidth", ingressRate: 8000 }, message: "if rate is set, burst must also be set" },
  { conf: hostLocalWith({ rangeStart: "10.2.0.9" }), message: "RangeStart 10.2.0.9 not in network 10.1.0.0/24" },
  { conf: hostLocalWith({ rangeEnd: "10.2.0.9" }), message: "RangeEnd 10.2.0.9 not in network 10.1.0.0/24" },
  {
    conf: hostLocalWith({ rangeStart: "10.1.0.255" }),
    message: "RangeStart 10.1.0.255 is after RangeEnd 10.1.0.254",
  },
  { conf: hostLocalWith({ gateway: "10.2.0.1" }), message: "gateway 10.2.0.1 not in network 10.1.0.0/24" },
  { conf: hostLocalWith({ subnet: "10.1.0.1/24" }), message: "Network has host bits set" },
  { conf: hostLocalWith({ subnet: "10.1.0.0/31" }), message: "too small to allocate from" },
  { conf: hostLocalWith({ ranges: [[{ subnet: "10.1.0.0/25" }]] }), message: "range set 0 overlaps with 1" },
  { conf: { type: "flannel", delegate: { type: "flannel" } }, message: "'delegate' cannot be flannel itself" },
];

for (const { conf, message, call } of refused) {
  test(`${conf.type}: ${message}`, async () => {
    await using machine = await openMachine();
    const container = await machine.container();
    const prevResult = { cniVersion: "1.0.0", ...dummies };
    const net = network(machine, { ...conf, cniVersion: "1.1.0" }, undefined, { own: () => ({ prevResult }) });
    const moment = await quietMoment(machine);
    const add = await net.call("ADD", container);
    expect([add.code, add.json.msg]).toEqual([1, expect.stringContaining(message)]);
    const check = await net.call("CHECK", container, { conf: { prevResult } });
    expect([check.code, check.json.msg]).toEqual([1, add.json.msg]);
    if (!call) {
      const status = await net.call("STATUS", undefined);
      expect([status.code, status.json.msg]).toEqual([1, add.json.msg]);
    }
    await net.del(container);
    await net.gc([]);
    expect(await leftSince(moment, machine)).toEqual([]);
  });
}

/** What ADD refuses where it stands: of a chain, or on a host. */
const refusedInPlace: {
  plugins: { type: string; [key: string]: unknown }[];
  message: string;
  cniVersion?: string;
  name?: string;
}[] = [
  {
    plugins: [{ ...hostLocalWith({ rangeStart: "10.2.0.9" }), type: "bridge" }],
    message: "RangeStart 10.2.0.9 not in network 10.1.0.0/24",
  },
  { plugins: [{ type: "portmap" }], message: "must be called as chained plugin" },
  { plugins: [{ type: "tuning" }], message: "Required prevResult missing" },
  {
    plugins: [{ type: "loopback" }, { type: "firewall" }],
    cniVersion: "0.3.1",
    message: "incompatible CNI versions",
  },
  // What ADD leaves to the kernel: the same reason in other words (test/kernel/plan.test.ts).
  ...["01:00:5e:00:00:01", "00:00:00:00:00:00"].map((mac) => ({
    plugins: [{ type: "bridge" }, { type: "tuning", mac }],
    message: `cannot assign requested address; the MAC address ${mac} is`,
  })),
  ...[["10.1.0.2/24", "10.1.0.2/24"], ["fd00::2/64", "fd00::2/64"], ["fd00::2/64", "fd00:0::2/48"]].map((twice) => ({
    plugins: [{ type: "bridge", ipam: { type: "static", addresses: twice.map((address) => ({ address })) } }],
    message: '"ipam.addresses[1].address": ',
  })),
  { plugins: [{ type: "host-device", device: "lo" }], message: '"device": lo cannot be moved' },
  { plugins: [{ type: "loopback" }], name: "a/b", message: "invalid characters found in network name" },
];

test("what ADD refuses in a configuration, ls refuses in the same words, and lint does, too", async () => {
  await using machine = await openMachine();
  const byConf = refused.filter(({ call }) => !call)
    .map(({ conf, message }) => ({ plugins: [{ type: "loopback" }, conf], message }));
  const all = [...byConf, ...refusedInPlace].map((row, index) => ({
    cniVersion: "1.1.0",
    name: `n${index}`,
    ...row,
  }));
  await machine.sh("mkdir -p /run/net.d");
  const files = all.map((_, index) => `/run/net.d/${10 + index}.conflist`);
  for (const [index, { message: _, ...list }] of all.entries()) {
    await machine.sh(`cat > ${files[index]} <<'end'\n${JSON.stringify(list)}\nend`);
  }
  const found = JSON.parse((await machine.run([PATCHBAY, "lint", "--json", "/run/net.d"])).stdout);
  const networks = JSON.parse((await machine.run([PATCHBAY, "ls", "--json", "--config-dir", "/run/net.d"])).stdout);
  for (const [index, { message }] of all.entries()) {
    const errors = found.filter(({ file, severity }: { file: string; severity: string }) =>
      file === files[index] && severity === "error"
    );
    const texts = errors.map(({ key, message }: { key: string; message: string }) => `"${key}" ${message}`).join(
      "\n",
    );
    // lint lists the permitted values of a key that has few.
    const words = / must be one of .*got "none"/.exec(texts)?.[0] ?? message.replace(/^"(.*)": /, '$1" ');
    expect([message, texts]).toEqual([message, expect.stringContaining(words)]);
    expect([message, networks[index].problems.join("\n")]).toEqual([message, expect.stringContaining(message)]);
  }
});

test("a bridge whose name no link can have is named by lint and ls, unless a bridge has it as another name", async () => {
  await using machine = await openMachine();
  const bridge = "a-bridge-with-a-long-name-xx";
  const list = { cniVersion: "1.1.0", name: "net", plugins: [{ type: "bridge", bridge }] };
  await machine.sh(`mkdir -p /run/net.d; echo '${JSON.stringify(list)}' > /run/net.d/net.conflist`);
  const ls = () => machine.run([PATCHBAY, "ls", "--config-dir", "/run/net.d"]);
  const lint = await machine.run([PATCHBAY, "lint", "/run/net.d"]);
  expect([lint.code, lint.stdout]).toEqual([1, expect.stringContaining('"plugins[0].bridge" must have at most 15')]);
  expect(await ls()).toMatchObject({ code: 1, stdout: expect.stringContaining("interface name is too long") });
  await machine.sh(`ip link add br0 type bridge; ip link property add dev br0 altname ${bridge}`);
  expect(await ls()).toMatchObject({ code: 0 });
});

test("plan lists what is refused as an obstacle, and exits with status 1", async () => {
  await using machine = await openMachine();
  const list = {
    cniVersion: "1.1.0",
    name: "net",
    plugins: [{ type: "bridge", hairpinMode: true, promiscMode: true }],
  };
  await machine.sh(`mkdir -p /run/net.d; echo '${JSON.stringify(list)}' > /run/net.d/net.conflist`);
  const { code, stderr } = await machine.run([PATCHBAY, "plan", "--config-dir", "/run/net.d", "net"]);
  expect([code, stderr]).toEqual([1, expect.stringContaining("'add' would fail: cannot set hairpin mode")]);
});
