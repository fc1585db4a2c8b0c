/** Whether a prevResult is the result of an ADD in the ledger: which differences count, and which do not. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Interface, IpConfig } from "../../../src/cni/result.ts";
import { answerOf, confirmedAdd, isPlainlyConfirmed } from "../../../src/engine/ledger/confirmation.ts";
import type { LedgerAdd, LedgerRecord } from "../../../src/engine/ledger/record.ts";

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
