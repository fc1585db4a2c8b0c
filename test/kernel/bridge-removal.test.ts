/**
 * DEL of bridge leaves nothing, whatever happened to the namespace, the ledger, the cache and the configuration since
 * ADD.
 *
 * Every row adds an attachment with all that bridge can make (addresses of both families, masquerading, the spoof
 * check), breaks something, and calls DEL. The machine must then be as it was, and the addresses free.
 *
 * Longer than 300 lines: a table of what can happen between ADD and DEL, one row each.
 */
import { expect, test } from "bun:test";
import { NEXT_STEP } from "../../src/engine/ledger/newer.ts";
import { lacks } from "../support/kernel-features.ts";
import { leftOf, leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine } from "../support/machine.ts";
import { type Network, network } from "../support/network.ts";
import { GO_PLUGINS, PATCHBAY } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";
import { ownShare } from "../support/share.ts";

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/24" }], [{ subnet: "fd20::/64" }]] };
const spoofGuard = lacks("nftables bridge family") ? {} : { macspoofchk: true };
const bridge = { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ...spoofGuard, ipam };

interface Change {
  /** What DEL is called with instead. */
  conf?: Record<string, unknown>;
  env?: Record<string, string | undefined>;
}

interface Row {
  name: string;
  spoil?: (machine: Machine, container: Container) => Promise<void>;
  del?: Change;
  /** Lines that the spoiling itself took away. */
  without?: RegExp;
}

const noPrevResult = { prevResult: undefined };
const noNetns = { CNI_NETNS: undefined };

const loseLedger = async (machine: Machine) => void await machine.sh("rm -r /run/patchbay");
/** Applies the edit to every ledger file; there must be one. */
const editLedger = (edit: string) => async (machine: Machine) =>
  void await machine.sh(
    `for file in $(find /run/patchbay -type f ! -name 'serve~*'); do ${edit}; done; test -n "$file"`,
  );
const loseNetns = async (machine: Machine, { name }: Container) => void await machine.sh(`ip netns del ${name}`);
const plainFile = async (machine: Machine, { name }: Container) =>
  void await machine.sh(`ip netns del ${name}; touch /run/netns/${name}`);

const rows: Row[] = [
  { name: "nothing spoiled" },
  { name: "no prevResult", del: { conf: noPrevResult } },
  { name: "no CNI_NETNS", del: { env: noNetns } },
  { name: "no CNI_NETNS, no prevResult", del: { env: noNetns, conf: noPrevResult } },
  { name: "namespace gone", spoil: loseNetns },
  { name: "namespace gone, no prevResult", spoil: loseNetns, del: { conf: noPrevResult } },
  { name: "a plain file in the namespace's place", spoil: plainFile },
  { name: "interface gone", spoil: async (m, one) => void await m.sh("ip link del eth0", { in: one }) },
  { name: "addresses gone", spoil: async (m, one) => void await m.sh("ip address flush dev eth0", { in: one }) },
  { name: "bridge gone", spoil: async (m) => void await m.sh("ip link del br0"), without: /^- host .*\bbr0\b/ },
  { name: "another bridge configured", del: { conf: { bridge: "br9" } } },
  { name: "no longer masquerading", del: { conf: { ipMasq: false } } },
  { name: "spoof guard switched off", del: { conf: { macspoofchk: false } } },
  { name: "the other masquerade backend", del: { conf: { ipMasqBackend: "nftables" } } },
  { name: "another subnet configured", del: { conf: { ipam: { ...ipam, ranges: [[{ subnet: "10.77.0.0/24" }]] } } } },
  { name: "made layer 2", del: { conf: { ipam: {} } } },
  { name: "another IPAM plugin", del: { conf: { ipam: { type: "static" } } } },
  { name: "configuration of an older version", del: { conf: { cniVersion: "0.4.0", ...noPrevResult } } },
  { name: "ledger lost", spoil: loseLedger },
  { name: "ledger lost, no prevResult", spoil: loseLedger, del: { conf: noPrevResult } },
  { name: "ledger lost, no CNI_NETNS", spoil: loseLedger, del: { env: noNetns } },
  {
    name: "ledger lost, namespace gone",
    spoil: async (machine, container) => (await loseLedger(machine), await loseNetns(machine, container)),
  },
  {
    name: "ledger lost, namespace gone, no prevResult",
    spoil: async (machine, container) => (await loseLedger(machine), await loseNetns(machine, container)),
    del: { conf: noPrevResult },
  },
  { name: "ledger empty", spoil: editLedger(": > $file") },
  { name: "ledger cut in the middle", spoil: editLedger("truncate -s $(( $(stat -c %s $file) / 2 )) $file") },
  { name: "ledger cut in its last line", spoil: editLedger("truncate -s -5 $file") },
  { name: "ledger of random bytes", spoil: editLedger("head -c 500 /dev/urandom > $file") },
  { name: "ledger of zeros", spoil: editLedger("head -c 500 /dev/zero > $file") },
  {
    name: "ledger with a byte flipped",
    spoil: editLedger("printf '\\377' | dd of=$file bs=1 seek=300 conv=notrunc"),
  },
  {
    name: "ledger with a byte flipped in the configuration",
    spoil: editLedger(
      `printf '\\377' | dd of=$file bs=1 seek=$(grep -abo ':true' $file | head -n 1 | sed 's/:.*//') conv=notrunc`,
    ),
  },
  {
    name: "ledger with another digit in the configuration's version",
    spoil: editLedger(`sed -i 's/\\(cniVersion[^0-9]*\\)1/\\19/' $file`),
  },
];

interface Stage {
  machine: Machine;
  net: Network;
  container: Container;
  /** Before the attachment, after an earlier one that came and went. */
  moment: Moment;
}

async function stage(conf: Parameters<typeof network>[1]): Promise<Stage> {
  const machine = await openMachine();
  const [first, container] = [await machine.container("first"), await machine.container("c1")];
  const net = network(machine, conf);
  await net.add(first);
  // Its first port gives a bridge a link-local address, at a time of the kernel's choice.
  await machine.sh(`until ip -6 address show dev ${conf.bridge} scope link | grep -q fe80; do sleep 0.05; done`);
  await net.del(first);
  await machine.removeContainer(first);
  return { machine, net, container, moment: await quietMoment(machine) };
}

async function holdsLease({ machine, container }: Stage): Promise<boolean> {
  return (await network(machine, { type: "host-local", ipam }).call("CHECK", container)).code === 0;
}

const cases = ["iptables", "nftables"].flatMap((backend) => rows.map((row) => ({ ...row, backend })));

test.each(ownShare(cases))("DEL leaves nothing ($backend): $name", async ({ backend, spoil, del = {}, without }) => {
  const attachment = await stage({ ...bridge, ipMasqBackend: backend });
  const { machine, net, container } = attachment;
  await using _ = machine;
  await net.add(container);
  expect(await holdsLease(attachment)).toBe(true);
  await spoil?.(machine, container);
  for (let count = 0; count < 3; count++) await net.del(container, del);
  expect(await holdsLease(attachment)).toBe(false);
  expect(await leftOf(attachment, without)).toEqual([]);
});

test.each([{ what: "in a newer format", edit: `sed -i 's/"patchbay":1/"patchbay":99/' $file` }, {
  what: "with a kind of a newer version",
  edit: `sed -i 's/"kind":"masquerade"/"kind":"of-tomorrow"/' $file`,
}])(
  "DEL with a ledger $what removes the rest, fails, and leaves the ledger to the newer version",
  async ({ edit }) => {
    const attachment = await stage({ ...bridge, ipMasqBackend: "nftables" });
    const { machine, net, container } = attachment;
    await using _ = machine;
    await net.add(container);
    const file = `/run/patchbay/net/ctr-c1@eth0@bridge`;
    await machine.sh(`cp ${file} /run/as-written`);
    await editLedger(edit)(machine);
    const edited = await machine.sh(`cat ${file}`);
    for (let count = 0; count < 2; count++) {
      const { code, json } = await net.call("DEL", container);
      expect(code).not.toBe(0);
      expect(json).toMatchObject({ msg: expect.stringContaining(file), details: NEXT_STEP });
      expect(await machine.sh(`cat ${file}`)).toBe(edited);
      expect(await holdsLease(attachment)).toBe(false);
      expect((await machine.run(["ip", "link", "show", "eth0"], { in: container })).code).not.toBe(0);
    }
    // The newer version comes back.
    await machine.sh(`cat /run/as-written > ${file}; rm /run/as-written`);
    await net.del(container);
    expect(await leftOf(attachment)).toEqual([]);
  },
);

test("DEL by another copy of the program, as after an upgrade, leaves nothing", async () => {
  const attachment = await stage(bridge);
  const { machine, net, container } = attachment;
  await using _ = machine;
  await net.add(container);
  await machine.sh(
    `mkdir /run/upgraded; cp ${PATCHBAY} /run/upgraded/bridge; cp -P /run/upgraded/bridge /run/upgraded/host-local`,
  );
  await network(machine, bridge, "/run/upgraded").del(container);
  await machine.sh("rm -r /run/upgraded");
  expect(await holdsLease(attachment)).toBe(false);
  expect(await leftOf(attachment)).toEqual([]);
});

test.each([
  { name: "with prevResult", conf: {} },
  { name: "without prevResult", conf: noPrevResult },
  { name: "without a namespace", conf: {}, env: noNetns },
])("DEL takes away what the Go plugins attached: $name", async ({ conf, env }) => {
  const plain = { ...bridge, cniVersion: "1.0.0" };
  const attachment = await stage(plain);
  const { machine, container } = attachment;
  await using _ = machine;
  const { prevResult } = { prevResult: await network(machine, plain, GO_PLUGINS).add(container) };
  await network(machine, plain).del(container, { conf: { prevResult, ...conf }, env });
  expect(await holdsLease(attachment)).toBe(false);
  expect(
    await leftOf(attachment, /last_reserved_ip|networks\/net\/lock|nft (table|chain) bridge .*nat (#|PREROUTING)/),
  ).toEqual([]);
});

test("DEL leaves nothing of containers with long ids", async () => {
  const attachment = await stage({ ...bridge, ipMasqBackend: "nftables" });
  const { machine, net, container } = attachment;
  await using _ = machine;
  for (const containerId of ["x".repeat(255), "x".repeat(3000)]) {
    for (const spoil of ["true", "rm -r /run/patchbay"]) {
      await net.add(container, { containerId });
      await machine.sh(spoil);
      await net.del(container, { containerId });
    }
  }
  expect(await leftOf(attachment)).toEqual([]);
});

/** ADD that cannot succeed; afterwards, without any DEL, all must be as before. */
const failing: { name: string; conf?: Record<string, unknown>; before?: string; says: RegExp }[] = [
  { name: "interface name taken", before: "ip -n c1 link add eth0 type veth peer name other", says: /eth0/ },
  {
    name: "another address on the bridge",
    before: "ip address flush dev br0; ip address add 10.99.0.1/24 dev br0",
    says: /already has an IP address different from/,
  },
  {
    name: "range exhausted",
    conf: {
      ipam: {
        type: "host-local",
        ranges: [[{ subnet: "fd20::/64" }], [{
          subnet: "10.20.1.0/24",
          rangeStart: "10.20.1.1",
          rangeEnd: "10.20.1.1",
        }]],
      },
    },
    says: /no IP addresses available in range set/,
  },
  { name: "IPAM plugin missing", conf: { ipam: { type: "nothing" } }, says: /nothing/ },
  {
    name: "route the kernel refuses",
    conf: { ipam: { ...ipam, routes: [{ dst: "192.168.1.1/16" }] } },
    says: /192\.168\.1\.1\/16/,
  },
  {
    name: "route to an unreachable gateway",
    conf: { ipam: { ...ipam, routes: [{ dst: "10.0.0.0/8", gw: "172.31.0.1" }] } },
    says: /172\.31\.0\.1/,
  },
  {
    name: "bridge is another kind of link",
    before: "ip link add kind type veth peer name kind2",
    conf: { bridge: "kind" },
    says: /not a bridge/,
  },
  { name: "mtu out of bounds", conf: { mtu: 100000 }, says: /./ },
  { name: "invalid MAC", conf: { runtimeConfig: { mac: "0g:00:00:00:00:01" } }, says: /0g:00:00:00:00:01/ },
  { name: "a new bridge's name too long", conf: { bridge: "bridge-name-too-long" }, says: /bridge-name-too-long/ },
];

test.each(failing)("a failed ADD leaves nothing: $name", async ({ conf, before, says }) => {
  const { machine, net, container } = await stage(bridge);
  await using _ = machine;
  if (before !== undefined) await machine.sh(before);
  const moment = await quietMoment(machine);
  const answer = await net.call("ADD", container, { conf });
  expect(answer.code).toBe(1);
  expect(`${answer.json.msg} ${answer.json.details}`).toMatch(says);
  expect(await leftSince(moment, machine, /file \/var\/lib\/cni\/networks/)).toEqual([]);
});

test("a failed ADD takes the bridge it made with it", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const moment = await quietMoment(machine);
  const addresses = [{ address: "10.20.0.5/24" }];
  const refused = { ...bridge, ipam: { type: "static", addresses, routes: [{ dst: "10.0.0.1/8" }] } };
  expect((await network(machine, refused).call("ADD", container)).code).toBe(1);
  expect(await leftSince(moment, machine, /sysctl .*forwarding|nft (table|chain)|tables nat/)).toEqual([]);
});

test.each(["ADD", "DEL"])(
  "%s with the host's own namespace is refused with code 8, and changes nothing",
  async (verb) => {
    const { machine, net, container } = await stage(bridge);
    await using _ = machine;
    await net.add(container);
    const moment = await quietMoment(machine);
    const env = { CNI_NETNS: `/proc/${machine.pid}/ns/net`, CNI_CONTAINERID: "other" };
    const answer = await net.call(verb, container, { env, ifName: "lo" });
    expect(answer.code).toBe(1);
    expect(answer.json).toMatchObject({
      code: 8,
      msg: "plugin's netns and netns from CNI_NETNS should not be the same",
    });
    expect(await leftSince(moment, machine)).toEqual([]);
  },
);

test("DEL after an ADD that found the interface taken leaves it to the network it belongs to", async () => {
  const { machine, net, container } = await stage(bridge);
  await using _ = machine;
  await net.add(container);
  const moment = await quietMoment(machine);
  const late = network(machine, { ...bridge, name: "late", bridge: "br1" });
  const { code, stdout } = await late.call("ADD", container);
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining("already exists") });
  await late.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
  await net.check(container);
  await net.del(container);
});

test("DEL of one attachment leaves the others", async () => {
  const { machine, net, container } = await stage(bridge);
  await using _ = machine;
  const others = [await machine.container("c2"), await machine.container("c3")];
  for (const other of others) await net.add(other);
  const moment = await quietMoment(machine);
  await net.add(container);
  await net.add(container, { ifName: "eth1" });
  await net.del(container, { ifName: "eth1" });
  await net.check(container);
  await net.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
  for (const other of others) await net.check(other);
});

test.each([
  { name: "from the ledgers", spoil: "true" },
  { name: "without ledgers", spoil: "rm -r /run/patchbay" },
])("GC removes what is not valid, and nothing else: $name", async ({ spoil }) => {
  const { machine, net, container } = await stage(bridge);
  await using _ = machine;
  const [gone, forgotten] = [await machine.container("c2"), await machine.container("c3")];
  await net.add(container);
  const moment = await quietMoment(machine);
  await net.add(gone);
  await net.add(forgotten);
  await machine.removeContainer(gone);
  await machine.sh(spoil);
  await net.gc([container]);
  const lookup = network(machine, { type: "host-local", ipam });
  expect(await Promise.all([container, gone, forgotten].map(async (one) => (await lookup.call("CHECK", one)).code)))
    .toEqual([0, 1, 1]);
  // Without a ledger nobody can say that a link in a namespace was ours: then only masquerading and
  // leases are found, because only they say which network they are of.
  const link = /^\+ (c3 |host (link|sysctl|route|address|vlan) .*c3\/eth0)|^[+-] .*(accept_redirects|macspoofchk)/;
  const except = spoil === "true" ? /^- c2 / : new RegExp(`^[+-] file /run/patchbay|^- c2 |${link.source}`);
  expect(await leftSince(moment, machine, except)).toEqual([]);
  await net.check(container);
});

test("GC goes on past what it cannot remove, tells of it, and finishes when it can", async () => {
  const { machine, net, container } = await stage(bridge);
  await using _ = machine;
  await net.add(container);
  const moment = await quietMoment(machine);
  const stale = [await machine.container("c2"), await machine.container("c3"), await machine.container("c4")];
  for (const each of stale) await net.add(each);
  const ledger = "/run/patchbay/net/ctr-c3@eth0@bridge";
  await machine.sh(`cp ${ledger} /run/ledger; echo '{"kind":"from-the-future","spec":{}}' >> ${ledger}`);
  const failed = await net.call("GC", undefined, {
    conf: { "cni.dev/valid-attachments": [{ containerID: "ctr-c1", ifname: "eth0" }] },
  });
  expect(failed.code).toBe(1);
  expect(failed.json.msg).toBe(`ledger ${ledger} holds a resource of unknown kind "from-the-future"`);
  for (const each of stale) await machine.removeContainer(each);
  const ofStale = /^- c[234] /;
  expect(await leftSince(moment, machine, /^- c[234] |file \/run\/(ledger|patchbay\/net\/ctr-c3@)/)).toEqual([]);
  await machine.sh(`mv /run/ledger ${ledger}`); // GC has left the other one
  await net.gc([container]);
  expect(await leftSince(moment, machine, ofStale)).toEqual([]);
  await net.check(container);
});

test("GC without a list of what is valid succeeds and takes nothing away; null is an empty list", async () => {
  const { machine, net, container } = await stage({ ...bridge, ipMasqBackend: "nftables" });
  await using _ = machine;
  const gone = await machine.container("c2");
  const empty = await quietMoment(machine);
  await net.add(container);
  await net.add(gone);
  await machine.removeContainer(gone);
  // The kernel ends a namespace, and the pair that had one end in it, when it has time.
  await untilTrue(() => machine.sh("ip -br link show type veth | wc -l"), (count) => count === "1\n");
  const moment = await quietMoment(machine);
  const gc = (conf: Record<string, unknown>) => net.call("GC", undefined, { conf });
  // What libcni's GCNetworkList writes when it is called without arguments, as by cnitool: neither key.
  expect(await gc({})).toMatchObject({ code: 0, stdout: "" });
  expect(await leftSince(moment, machine)).toEqual([]);
  await net.check(container);
  // And with arguments that name no attachment: a nil slice.
  expect(await gc({ "cni.dev/valid-attachments": null })).toMatchObject({ code: 0, stdout: "" });
  expect(await leftSince(empty, machine, /^- c2 /)).toEqual([]);
});

test("GC reads the list of what is valid by its name of today or the one that 1.1.0 was released with", async () => {
  const { machine, net, container } = await stage(bridge);
  await using _ = machine;
  const stale = await machine.container("c2");
  const moment = await quietMoment(machine);
  await net.add(container);
  await net.add(stale);
  const gc = (conf: Record<string, unknown>) => net.call("GC", undefined, { conf });
  const [one, other] = [container, stale].map(({ name }) => [{ containerID: `ctr-${name}`, ifname: "eth0" }]);
  expect((await gc({ "cni.dev/attachments": one, "cni.dev/valid-attachments": [...one!, ...other!] })).code).toBe(0);
  await net.check(stale);
  expect((await gc({ "cni.dev/attachments": one })).code).toBe(0);
  await net.check(container);
  expect((await net.call("CHECK", stale)).code).toBe(1);
  await net.del(container);
  expect(await leftSince(moment, machine)).toEqual([]);
});

/** Fails after it has made another link the bridge's port, as another network's ADD may do at that moment. */
const joining = `#!/bin/sh
[ $CNI_COMMAND = ADD ] || exit 0
ip link add p1 type veth peer name p2; ip link set p1 master br0
echo '{"cniVersion":"1.0.0","code":99,"msg":"on purpose"}'; exit 1
`;

test("a failed ADD leaves the bridge that it made to who has joined it meanwhile", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.run(["sh", "-c", "mkdir /run/bin; cat >/run/bin/joining; chmod 755 /run/bin/joining"], {
    stdin: joining,
  });
  const conf = { ...bridge, cniVersion: "1.0.0", ipam: { type: "joining" } };
  const net = network(machine, conf, undefined, { env: { CNI_PATH: "/run/bin" } });
  expect((await net.call("ADD", container)).json).toMatchObject({ code: 99 });
  expect(await machine.sh("ip -br link show master br0")).toStartWith("p1@p2");
});
