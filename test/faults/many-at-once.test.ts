/** Sixteen processes at once share a range that is too small for them: no address is given twice, none is lost. */
import { expect, test } from "bun:test";
import { lacks } from "../support/kernel-features.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Container, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

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
