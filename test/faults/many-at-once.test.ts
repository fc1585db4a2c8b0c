/** Sixteen processes at once share a range that is too small for them: no address is given twice, none is lost. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { environmentOf, patchbayPlugins } from "../support/plugins.ts";

const PROCESSES = 16;
const ADDRESSES = 13; // a /28 without network, broadcast and gateway

const ipam = { type: "host-local", ranges: [[{ subnet: "10.20.0.0/28" }], [{ subnet: "fd20::/64" }]] };
const spoofGuard = lacks("nftables bridge family") ? {} : { macspoofchk: true };
const confs = [
  { type: "host-local", ipam },
  { type: "bridge", bridge: "br0", isDefaultGateway: true, ipMasq: true, ...spoofGuard, ipam },
];

test.each(confs)("$type: ADD and DEL of sixteen at once", async (conf) => {
  await using machine = await openMachine();
  const net = network(machine, conf);
  const containers: Container[] = [];
  for (let index = 0; index < PROCESSES; index++) containers.push(await machine.container());
  const [first] = containers as [Container];
  await net.add(first);
  await net.del(first);
  const moment = await quietMoment(machine);

  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(containers.map((one) => net.call("ADD", one)));
    const added = answers.filter(({ code }) => code === 0);
    const refused = answers.filter(({ code }) => code !== 0);
    // deno-lint-ignore no-explicit-any
    const addresses = added.flatMap(({ json }) => json.ips.map(({ address }: any) => address));
    expect(added).toHaveLength(ADDRESSES);
    expect(new Set(addresses).size).toBe(ADDRESSES * 2);
    for (const { json } of refused) expect(json.msg).toContain("no IP addresses available in range set");
    const deleted = await Promise.all(containers.map((one) => net.call("DEL", one)));
    expect(deleted.filter(({ code }) => code !== 0).map(({ stdout }) => stdout)).toEqual([]);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
}, 300_000);

test("ADD of some while others are deleted", async () => {
  await using machine = await openMachine();
  const net = network(machine, confs[1]!);
  const containers: Container[] = [];
  for (let index = 0; index < ADDRESSES; index++) containers.push(await machine.container());
  const [first] = containers as [Container];
  await net.add(first);
  await net.del(first);
  const moment = await quietMoment(machine);
  const failures: string[] = [];
  // Each container comes and goes by itself; there is always an address for everyone.
  await Promise.all(containers.map(async (one) => {
    for (let round = 0; round < 5; round++) {
      for (const verb of ["ADD", "CHECK", "DEL"]) {
        const { code, stdout, stderr } = await net.call(verb, one);
        if (code !== 0) failures.push(`${verb} ${one.name}: ${stdout}${stderr}`);
      }
    }
  }));
  expect(failures).toEqual([]);
  expect(await leftSince(moment, machine)).toEqual([]);
}, 300_000);

test("ADD and DEL of one attachment at once end in one of both states", async () => {
  await using machine = await openMachine();
  const container = await machine.container();
  const net = network(machine, confs[1]!);
  await net.add(container);
  await net.del(container);
  const moment = await quietMoment(machine);
  for (let round = 0; round < 10; round++) {
    const [added, deleted] = await Promise.all([net.call("ADD", container), net.call("DEL", container)]);
    expect(deleted.code).toBe(0);
    // When ADD says that it succeeded it has: or DEL came later and took it away.
    expect([0, 1]).toContain(added.code);
    await net.del(container);
    expect(await leftSince(moment, machine)).toEqual([]);
  }
}, 300_000);

test("the directory of the network's ledgers is removed just before ADD makes its file in it", async () => {
  await using machine = await openMachine();
  const [one, other] = [await machine.container("c1"), await machine.container("c2")] as const;
  const conf = { type: "bridge", ipam: { type: "host-local", subnet: "10.20.1.0/24" } };
  const net = network(machine, conf);
  await net.add(one);
  const call = {
    plugin: "bridge",
    command: "ADD",
    container: other,
    conf: { cniVersion: "1.1.0", name: "net", ...conf },
  };
  const env = { ...environmentOf(patchbayPlugins(), call), PATCHBAY_RESIDENT: "off" };
  const ledger = "/run/patchbay/net/ctr-c2@eth0@bridge";
  // The first opening is a look whether there is a ledger, the second makes the file.
  const words = ["strace", "-qq", "-o", "/run/trace", "-P", ledger, "-e", "inject=openat:delay_enter=500000:when=2"];
  const adding = machine.run([...words, `${patchbayPlugins()}/bridge`], { env, stdin: JSON.stringify(call.conf) });
  await machine.sh(`until grep -q openat /run/trace 2>/dev/null; do sleep 0.01; done`);
  await net.del(one);
  const { code, stdout } = await adding;
  expect([code, JSON.parse(stdout).ips?.length]).toEqual([0, 1]);
  expect(await machine.sh("cat /run/trace")).toContain("ENOENT");
  expect(await machine.sh(`grep -c answer ${ledger}`)).toBe("1\n");
  await net.del(other);
});
