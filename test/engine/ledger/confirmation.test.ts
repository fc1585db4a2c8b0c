/** Whether a prevResult is the result of an ADD in the ledger: which differences count, and which do not. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Interface, IpConfig } from "../../../src/cni/result.ts";
import { answerOf, confirmedAdd, hasLinkOf, isPlainlyConfirmed } from "../../../src/engine/ledger/confirmation.ts";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import type { LedgerAdd, LedgerRecord } from "../../../src/engine/ledger/record.ts";
import { benchForEachTest, containerWith, made, owner, recorded } from "../../support/engine-bench.ts";

// Nothing is read of the machine's own.
beforeAll(() => void (process.env.PATCHBAY_STATE_DIR = "/none"));
afterAll(() => void delete process.env.PATCHBAY_STATE_DIR);

const header = {
  patchbay: 1 as const,
  network: "net",
  containerId: "ctr",
  ifName: "eth0",
  plugin: "bridge",
  netnsPath: "/run/netns/x",
  cniArgs: "",
  stdin: "{}",
};
const outside: Interface = { name: "veth1", mac: "02:00:00:00:00:01" };
const inside: Interface = { name: "eth0", mac: "02:00:00:00:00:0a", sandbox: "/run/netns/x" };
const ips: IpConfig[] = [{ address: "10.0.0.5/24" }, { address: "fd00::5/64" }];

function recordOf(...results: { interfaces?: Interface[]; ips?: IpConfig[] }[]): LedgerRecord {
  const adds = results.map((result): LedgerAdd => ({
    header,
    entries: [],
    answer: answerOf({ cniVersion: "1.1.0", ...result }, "eth0"),
  }));
  return { path: "/none", adds, header, entries: [], damaged: false };
}

const veth = { interfaces: [outside, inside], ips }, macvlan = { interfaces: [inside], ips };
const named = (name: string) => ({ ...outside, name });

/** The result of ADD, prevResult, and whether it is that: as it is written, and after both are read. */
const rows: [what: string, made: typeof veth, given: typeof veth, plainly: boolean, read: boolean][] = [
  ["the same", veth, veth, true, true],
  [
    "what later plugins have added",
    veth,
    { interfaces: [named("ifb0"), ...veth.interfaces], ips: [...ips, { address: "10.9.0.1/24" }] },
    true,
    true,
  ],
  ["another link on the host", veth, { ...veth, interfaces: [named("veth2"), inside] }, false, false],
  ["no link on the host", veth, { ...veth, interfaces: [inside] }, false, false],
  [
    "the host's link in a container",
    veth,
    { ...veth, interfaces: [{ ...outside, sandbox: "/run/netns/x" }, inside] },
    false,
    false,
  ],
  ["the second address is another", veth, { ...veth, ips: [ips[0]!, { address: "fd00::6/64" }] }, false, false],
  ["the first address is another", veth, { ...veth, ips: [{ address: "10.0.0.6/24" }, ips[1]!] }, false, false],
  ["another prefix", veth, { ...veth, ips: [{ address: "10.0.0.5/16" }, ips[1]!] }, false, false],
  ["no address", veth, { ...veth, ips: [] }, false, false],
  ["addresses in another form", veth, { ...veth, ips: [ips[0]!, { address: "fd00:0::05/64" }] }, false, true],
  [
    "a MAC that a later plugin has set, beside a link on the host",
    veth,
    { ...veth, interfaces: [outside, { ...inside, mac: "02:00:00:00:00:0b" }] },
    true,
    true,
  ],
  ["without a link on the host: the same", macvlan, macvlan, true, true],
  [
    "without a link on the host: another MAC",
    macvlan,
    { ...macvlan, interfaces: [{ ...inside, mac: "02:00:00:00:00:0b" }] },
    false,
    false,
  ],
  [
    "without a link on the host: a MAC in capitals",
    macvlan,
    { ...macvlan, interfaces: [{ ...inside, mac: "02:00:00:00:00:0A" }] },
    false,
    true,
  ],
  [
    "without a link on the host: another link has the MAC",
    macvlan,
    { ...macvlan, interfaces: [{ ...inside, name: "eth1" }, { ...inside, mac: "02:00:00:00:00:0b" }] },
    false,
    false,
  ],
];

test.each(rows)("%s", (_what, made, given, plainly, read) => {
  const other = {
    interfaces: [named("veth9"), { ...inside, mac: "02:00:00:00:00:0c" }],
    ips: [{ address: "10.0.0.9/24" }],
  };
  const prevResult = { cniVersion: "1.1.0", ...given };
  for (const results of [[made], [made, other], [other, made]]) {
    const record = recordOf(...results), found = confirmedAdd(record, prevResult);
    expect([isPlainlyConfirmed(record, prevResult), found !== undefined]).toEqual([plainly, read]);
    if (read) expect(found).toBe(record.adds[results.indexOf(made)]);
  }
});

describe("a later plugin that has altered the result", () => {
  benchForEachTest();

  const mac = (last: string) => ({ interfaces: [{ ...inside, mac: `02:00:00:00:00:${last}` }], ips });
  const result = (last: string) => ({ cniVersion: "1.1.0", ...mac(last) });
  const answered = (last: string) => answerOf(result(last), "eth0");
  const given = (last: string) => JSON.stringify({ cniVersion: "1.1.0", name: "net", prevResult: result(last) });

  test("says in its ledger what it was before, also when it was altered twice", () => {
    recorded([made("thing a")], { plugin: "first" }, answered("0a"));
    recorded([made("thing b")], { plugin: "first" }, answered("0e"));
    recorded([made("thing c")], { plugin: "second", stdin: given("0a") }, answered("0b"));
    recorded([made("thing d")], { plugin: "third", stdin: given("0b") }, answered("0c"));
    const first = readLedger(owner, "first")!;
    for (const last of ["0a", "0b", "0c"]) expect(confirmedAdd(first, result(last))).toBe(first.adds[0]!);
    expect(confirmedAdd(first, result("0e"))).toBe(first.adds[1]!);
    expect(confirmedAdd(first, result("0d"))).toBeUndefined();
    const second = readLedger(owner, "second")!;
    expect(confirmedAdd(second, result("0c"))).toBe(second.adds[0]!);
    // What it was called with is not altered yet.
    expect(confirmedAdd(second, result("0a"))).toBe(second.adds[0]!);
  });

  test("says nothing where its ledger has no result from before, or has the same again", () => {
    recorded([made("thing a")], { plugin: "first" }, answered("0a"));
    recorded([made("thing b")], { plugin: "second", stdin: '{"prevResult":5}' }, answered("0b"));
    recorded([made("thing c")], { plugin: "third", stdin: given("0b") }, answered("0b"));
    recorded([made("thing d")], { plugin: "fourth", stdin: given("0b") });
    expect(confirmedAdd(readLedger(owner, "first")!, result("0b"))).toBeUndefined();
  });

  test("one that did not end confirms nothing, though it was called with the result", () => {
    recorded([made("thing a")], { stdin: given("0a") });
    expect(confirmedAdd(readLedger(owner, "test")!, result("0a"))).toBeUndefined();
  });
});

test("a result of an old version has no links, and confirms by its addresses", () => {
  const record = recordOf(veth);
  expect(confirmedAdd(record, { cniVersion: "0.2.0", ips })).toBe(record.adds[0]!);
  expect(confirmedAdd(record, { cniVersion: "0.2.0", ips: [ips[0]!] })).toBeUndefined();
});

test("of an answer without a link on the host the MAC is that of the container's link", () => {
  const interfaces = [inside, { ...inside, name: "eth1", mac: "02:00:00:00:00:0c" }];
  expect(answerOf({ cniVersion: "1.1.0", interfaces }, "eth0")).toEqual({
    links: [],
    mac: inside.mac!,
    addresses: [],
  });
});

test("what is no result confirms nothing plainly", () => {
  const record = recordOf({ ips: [] });
  expect(isPlainlyConfirmed(record, { interfaces: [], ips: [] })).toBe(true);
  expect(isPlainlyConfirmed(record, { interfaces: [5], ips: [5] })).toBe(true);
  for (
    const wrong of [undefined, null, "x", {}, { interfaces: {} }, { interfaces: {}, ips: [] }, {
      interfaces: [],
      ips: {},
    }]
  ) {
    expect(isPlainlyConfirmed(record, wrong)).toBe(false);
  }
});

test("the container's link is there where it has the MAC of the result, however that is written", () => {
  const result = { cniVersion: "1.1.0", ...veth }, { mac } = inside, sandbox = inside.sandbox!;
  const links = { eth0: mac!, eth1: "02:00:00:00:00:0b" };
  const isThere = (interfaces: Interface[] | undefined, container = containerWith(links)) =>
    hasLinkOf(interfaces === undefined ? { cniVersion: "1.1.0" } : { ...result, interfaces }, "eth0", { container });
  expect(isThere([outside, inside])).toBe(true);
  expect(isThere([{ ...inside, mac: mac!.toUpperCase() }])).toBe(true);
  expect(isThere([{ ...inside, name: "eth0", sandbox: "/run/netns/y", mac: "02:00:00:00:00:0c" }, inside])).toBe(
    true,
  );
  expect(
    isThere([inside, { name: "eth0", mac: "02:00:00:00:00:0c" }, {
      name: "eth1",
      mac: "02:00:00:00:00:0c",
      sandbox,
    }]),
  ).toBe(true);
  expect(isThere([{ ...inside, mac: "02:00:00:00:00:0b" }])).toBe(false);
  expect(isThere([{ ...inside, sandbox: "/run/netns/y" }])).toBe(false);
  expect(isThere([{ name: "eth0", sandbox }], containerWith({}))).toBe(false);
  expect(isThere([inside], containerWith({ eth1: mac! }))).toBe(false);
  expect(isThere(undefined)).toBe(false);
  expect(hasLinkOf(result, "eth0", { container: undefined })).toBe(false);
});
