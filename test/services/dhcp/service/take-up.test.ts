/** What a service makes of the records that it finds: of this boot and of earlier ones, held and given up. */
import { readFileSync } from "node:fs";
import { expect, spyOn, test } from "bun:test";
import { Journal, recordsIn } from "../../../../src/services/dhcp/journal/journal.ts";
import type { LeaseRecord } from "../../../../src/services/dhcp/journal/record.ts";
import { Attachment } from "../../../../src/services/dhcp/service/attachment.ts";
import { recordOf } from "../../../support/dhcp/lease-record.ts";
import { dualStack, DUID, IAID } from "../../../support/dhcp/simulated-attachment.ts";
import { SERVER_MAC } from "../../../support/dhcp/simulated-link.ts";
import { BOOTED, SimulatedService } from "../../../support/dhcp/simulated-service.ts";

const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), WEEK_S = 7 * 24 * 3600;
const script = { address: "192.168.77.50", leaseSeconds: 1000 };

/** A lease of 1000 seconds, `age` seconds old. */
function agedRecord(
  it: SimulatedService,
  containerId: string,
  age: number,
  change: Partial<LeaseRecord> = {},
): LeaseRecord {
  const stamps = { since: it.now - age, sinceWall: BOOTED + it.now - age };
  const times = { renew: 500, rebind: 875 },
    server = "192.168.77.1",
    more = { search: [], nameServers: [], timeServers: [] };
  return recordOf(containerId, {
    cookie: "cookie",
    bootId,
    v4: {
      lease: {
        address: "192.168.77.50/24",
        server,
        routers: [server],
        isClassless: false,
        ...more,
        ...times,
        lease: 1000,
      },
      ...stamps,
      serverMac: SERVER_MAC,
    },
    ...change,
  });
}

function keep(
  it: SimulatedService,
  records: readonly LeaseRecord[],
  toBeReleased: readonly LeaseRecord[] = [],
): void {
  const journal = Journal.open(it.directory)!;
  for (const one of records) journal.write(one, false);
  for (const one of toBeReleased) journal.releaseLater(one, false);
  journal.close();
}

const names = (it: SimulatedService) => recordsIn(it.directory).map(({ record }) => record.containerId).sort();
const wishes = ({ link }: SimulatedService) => link.packets.at(-1)!.bytes.toHex().includes("3204c0a84d32");

test("leases of this boot go on; those that are due take turns of ten seconds", () => {
  using it = new SimulatedService(script);
  it.link.netlink.addresses.set("192.168.77.50/24", 0);
  keep(it, [agedRecord(it, "c1", 100), agedRecord(it, "c2", 600)]);
  it.begin();
  expect([it.list(), it.link.log]).toEqual([["c1", "c2"], ["2 leases go on, 0 from before the boot are remembered"]]);
  expect([it.pass(4.9), it.pass(0.2).slice(0, 1)]).toEqual([[], ["REQUEST from 192.168.77.50 to 192.168.77.1"]]);
  expect(it.check("c1")).toHaveProperty("lease");
});

test("what was given up while no service ran is given back, and its address is remembered", () => {
  using it = new SimulatedService(script);
  const one = agedRecord(it, "c1", 100);
  keep(it, [one], [one]);
  it.begin();
  expect(it.link.news()).toEqual([`RELEASE from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`]);
  expect([names(it), it.list(), it.link.handles]).toEqual([[], [], 0]);
  it.add("c1");
  expect(wishes(it)).toBe(true);
});

test("of earlier boots: remembered for a week after the end, told, and given back or forgotten with their container", () => {
  using it = new SimulatedService(script);
  const old = { bootId: "an earlier one" };
  keep(it, [
    agedRecord(it, "held", 900, old),
    agedRecord(it, "ended", 1000, old),
    agedRecord(it, "last", 999 + WEEK_S, old),
    agedRecord(it, "late", 1000 + WEEK_S, old),
  ]);
  it.begin();
  expect(it.link.log).toEqual(["0 leases go on, 3 from before the boot are remembered"]);
  expect([it.list(), names(it)]).toEqual([["ended", "held", "last"], ["ended", "held", "last"]]);
  expect(it.list("ended/net/eth0")).toEqual(["held", "last"]);
  expect(it.check("held")).toHaveProperty("failure");
  for (const name of ["held", "ended"]) it.release(name);
  // Nothing of the ended one is the server's business.
  expect(it.link.news()).toEqual([`RELEASE from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`]);
  expect(names(it)).toEqual(["last"]);
});

test("one that is held is told as one", () => {
  using it = new SimulatedService(script);
  keep(it, [agedRecord(it, "c1", 100), agedRecord(it, "c2", 100, { bootId: "an earlier one" })]);
  it.begin();
  expect(it.link.log).toEqual(["1 lease goes on, 1 from before the boot is remembered"]);
  using single = new SimulatedService(script);
  keep(single, [agedRecord(single, "c1", 100)]);
  single.begin();
  expect(single.link.log).toEqual(["1 lease goes on, 0 from before the boot are remembered"]);
  using empty = new SimulatedService(script).begin();
  expect(empty.link.log).toEqual([]);
});

test("after a boot a container asks for the address that it had, as its own for as long as the lease lasts", () => {
  using it = new SimulatedService(script);
  const v6 = {
    lease: {
      address: "fd00:77::50",
      server: "0102",
      ...{ preferred: 600, valid: 2000, renew: 300, rebind: 480 },
      ...{ nameServers: [], search: [], timeServers: [] },
    },
    ...{ since: 0, sinceWall: BOOTED + it.now - 1200, linkLocal: "" },
  };
  const old = { bootId: "an earlier one" }, none = { ...old, v4: undefined };
  keep(it, [
    agedRecord(it, "held", 900, old),
    agedRecord(it, "ended", 1100, old),
    agedRecord(it, "v6", 0, { ...none, v6 }),
  ]);
  it.begin();
  it.add("ended");
  expect([it.link.news().slice(0, 1), wishes(it)]).toEqual([["DISCOVER to everybody"], true]);
  it.add("held");
  expect(it.link.news().slice(0, 1)).toEqual(["REQUEST to everybody"]);
  it.add("v6", { ...dualStack, v4: false, v6: { duid: DUID, iaid: IAID }, required: ["ipv6"] });
  expect(it.link.news()).toContain("CONFIRM from fe80::7 to everybody");
  it.pass(1);
  // What is got again is no lease of before any more.
  it.release("held");
  expect(names(it)).toEqual(["ended", "v6"]);
});

test("a container of another name with the same client id takes the record of before", () => {
  using it = new SimulatedService(script);
  keep(it, [agedRecord(it, "c1", 100, { bootId: "an earlier one" })]);
  it.begin();
  it.add("c2", { clientId: Buffer.from("c1").toString("hex") });
  expect(it.list()).toEqual(["c1"]);
  it.pass(1);
  expect([names(it), it.list()]).toEqual([["c2"], ["c2"]]);
});

test("a list has no more names than fit into an answer", () => {
  using it = new SimulatedService(script);
  const numbers = Array.from({ length: 201 }, (_, number) => String(number).padStart(3, "0"));
  keep(it, numbers.map((name) => agedRecord(it, name, 100, { bootId: "an earlier one" })));
  it.begin();
  expect([it.list().length, it.list("199/net/eth0")]).toEqual([200, ["200"]]);
});

test("a record that makes trouble is told, and the others go on", () => {
  using it = new SimulatedService(script);
  keep(it, [agedRecord(it, "c1", 100), agedRecord(it, "c2", 100)]);
  using _defect = spyOn(Attachment, "resume").mockImplementationOnce(() => {
    throw new Error("a defect");
  });
  it.begin();
  expect(it.list().length).toBe(1);
  expect(it.link.log[0]).toMatch(/^c\d\/net\/eth0: Error: a defect/);
});
