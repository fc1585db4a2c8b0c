/** An attachment with its leases, in simulated time: whom it answers and when, what it remembers, and how it ends. */
import { expect, test } from "bun:test";
import { dualStack, SimulatedAttachment } from "../../../support/dhcp/simulated-attachment.ts";
import { SERVER_MAC, SimulatedLink } from "../../../support/dhcp/simulated-link.ts";
import { server6 } from "../../../support/dhcp/simulated-frames.ts";

const script = { address: "192.168.77.50", leaseSeconds: 1000 };
const both = "ADD gets 192.168.77.50/24 and fd00:77::50", only4 = "ADD gets 192.168.77.50/24";

test("ADD has its answer when every lease is there", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, dualStack);
  it.begin();
  expect(it.pass(30).filter((one) => one.startsWith("ADD"))).toEqual([]);
  link.answer6 = server6();
  expect(it.pass(20)).toContain(both);
});

test("a lease that is not required is waited for five seconds, and comes later by itself", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, { ...dualStack, required: ["ipv4"] });
  it.begin();
  it.pass(4.9);
  expect(it.attachment.due - it.now).toBeLessThanOrEqual(0.1001);
  expect(it.pass(0.2)).toContain(only4);
  expect([it.attachment.isUsable(), it.attachment.isAwaited]).toEqual([true, false]);
  link.answer6 = server6();
  expect(it.pass(300)).toContain("address fd00:77::50/128 for 1000 s, preferred for 600 s");
});

test("what ADD did not wait for is asked for ever less often", () => {
  for (const required of ["ipv4", "ipv6"] as const) {
    using link = new SimulatedLink(required === "ipv4" ? script : undefined);
    if (required === "ipv6") link.answer6 = server6();
    const it = new SimulatedAttachment(link, { ...dualStack, required: [required] });
    it.begin();
    it.pass(10);
    expect(it.attachment.isAwaited).toBe(false);
    const asked = it.pass(900).filter((one) => /^(DISCOVER|SOLICIT)/.test(one));
    expect({ required, asked: asked.length < 20 ? "seldom" : asked.length }).toEqual({ required, asked: "seldom" });
  }
});

test("without the lease that is required ADD fails, and gives the other one back", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link, { ...dualStack, required: ["ipv6"] });
  it.begin(20);
  expect(it.pass(19).filter((one) => one.startsWith("ADD"))).toEqual([]);
  expect(it.pass(1)).toEqual([
    "ADD fails: no more tries: IPv6: no server has answered, waited 20 s",
    "net has none: IPv6: no server has answered",
    "journal: to be released",
    `RELEASE from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`,
    "journal: removed",
  ]);
  expect([it.isOver, link.open, link.handles]).toEqual([true, 0, 0]);
});

test("what is missing for several reasons is told with all of them", () => {
  using link = new SimulatedLink();
  const it = new SimulatedAttachment(link, dualStack);
  it.begin(1);
  expect(it.pass(1)).toContain(
    "ADD fails: no more tries: no server has answered DISCOVER; IPv6: no server has answered, waited 1 s",
  );
});

test("several ADDs are answered, each in its time; the last one that gives up ends the attachment", () => {
  using link = new SimulatedLink();
  const it = new SimulatedAttachment(link), first = it.begin(10);
  it.now += 5;
  const second = it.ask(15, "second");
  expect(it.attachment.isUsable()).toBe(true);
  expect(it.pass(5)).toContain("ADD fails: no more tries: no server has answered DISCOVER, waited 10 s");
  expect(it.attachment.stopWaiting(first)).toBe(false);
  expect(it.attachment.stopWaiting(second)).toBe(true);
  expect(it.pass(10)).toContain("net has none: no server has answered DISCOVER");
  expect([it.isOver, it.attachment.stopWaiting(second)]).toEqual([true, false]);

  const other = new SimulatedAttachment(link), one = other.begin(10);
  other.ask(15, "second");
  expect(other.attachment.stopWaiting(one)).toBe(false);
  link.script(script);
  expect(other.pass(9)).toContain("second gets 192.168.77.50/24");
});

test("an ADD that is repeated has its answer at once, and the addresses are watched anew", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.begin();
  it.pass(1);
  it.ask(5, "second");
  expect(link.news()).toEqual(["second gets 192.168.77.50/24"]);
  // The address does not come.
  expect(it.attachment.due - it.now).toBeCloseTo(9, 1);
  expect(it.pass(10)).toEqual(["addresses are not watched"]);
  expect(link.handles).toBe(0);
  it.ask(5, "third");
  expect(link.news()).toEqual(["addresses are watched: groups 5 and 9", "third gets 192.168.77.50/24"]);
  expect([link.handles, it.attachment.fds.length, it.attachment.due]).toEqual([1, 1, it.now + 10]);
  it.attachment.close();
  expect([link.news(), link.handles]).toEqual([["addresses are not watched"], 0]);
});

test("both addresses are looked for; notifications that were lost are a reason to look", () => {
  using link = new SimulatedLink(script);
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, dualStack);
  it.begin();
  it.pass(1);
  link.netlink.addresses.set("192.168.77.50/24", 0);
  for (let count = 0; count < 20; count++) link.changes.push({ bytes: new Uint8Array(), sentBytes: 0, sender: 0 });
  it.attachment.wake(it.now);
  // Others have their turn.
  expect([link.news(), link.changes.length]).toEqual([[
    "address 192.168.77.50/24 for 999 s, broadcast 192.168.77.255",
  ], 12]);
  link.changes = [new Error("no buffer space available")];
  link.netlink.addresses.set("fd00:77::50/64", 0);
  expect(it.pass(0)).toEqual([
    "address 192.168.77.50/24 for 999 s, broadcast 192.168.77.255",
    "address fd00:77::50/64 for 999 s, preferred for 599 s",
    "addresses are not watched",
  ]);
});

test("a link that does not let itself be looked at is not watched any more", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.begin();
  it.pass(1);
  link.netlink.addresses.set("192.168.77.50/24", 0);
  link.netlink.failure = new Error("operation not permitted");
  link.changes.push({ bytes: new Uint8Array(), sentBytes: 0, sender: 0 });
  expect(it.pass(0)).toEqual(["addresses are not watched"]);
  expect(link.log.at(-1)).toBe("c1/net/eth0: operation not permitted");
  link.gone = "the namespace is gone";
  it.ask();
  expect([link.news(), link.log.at(-1)]).toEqual([
    ["ADD gets 192.168.77.50/24"],
    "c1/net/eth0: the namespace is gone",
  ]);
});

test("a lease that cannot be recorded is not used: ADD fails with the reason, and the server has it back", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.journalFailure = new Error("the disk is full");
  it.begin();
  expect(it.pass(1).slice(2)).toEqual([
    "journal: written durably",
    "ADD fails: cannot record the lease: the disk is full",
    "net has none: cannot record the lease: the disk is full",
    "journal: to be released",
    `RELEASE from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`,
    "journal: removed",
  ]);
  expect(link.log.slice(1)).toEqual([
    "c1/net/eth0: cannot record the lease: the disk is full",
    "c1/net/eth0: releasing lease",
    "c1/net/eth0: the disk is full",
  ]);
});

test("a renewal that cannot be recorded counts", () => {
  using link = new SimulatedLink(script);
  const it = new SimulatedAttachment(link);
  it.bind();
  it.journalFailure = new Error("the disk is full");
  expect(it.passToRenewal().slice(2)).toEqual([
    "address 192.168.77.50/24 for 1000 s, broadcast 192.168.77.255",
    "c1 has a lease",
  ]);
  expect(link.log).toContain("c1/net/eth0: cannot record the lease: the disk is full");
});

test("the next service goes on with the record: by the clock of the boot, or that of the world after another boot", () => {
  using link = new SimulatedLink(script);
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, dualStack);
  it.bind(["192.168.77.50/24", "fd00:77::50/64"]);
  it.attachment.close();
  it.now += 98;
  it.resume();
  expect(link.news()).toEqual([]);
  expect(it.attachment.answer()).toMatchObject({
    lease: { address: "192.168.77.50/24" },
    lease6: { address: "fd00:77::50" },
  });
  expect([it.attachment.isAwaited, it.attachment.due, it.attachment.fds]).toEqual([
    false,
    expect.closeTo(1292.5, 3),
    [],
  ]);
  // Its address is on the link, so it is looked after before the first renewal.
  link.netlink.addresses.delete("192.168.77.50/24");
  expect(it.pass(400).find((one) => one.startsWith("address 192"))).toMatch(/^address 192.168.77.50\/24 for 51\d s/);

  // A boot later the clock of the boot is at 50; 300 seconds have gone by.
  it.attachment.close();
  it.context.bootId = "another boot";
  it.wallOffset = it.wallOffset + it.kept!.v4!.since + 300 - 50;
  it.now = 50;
  it.resume();
  expect(it.attachment.v4!.client.lease!.since).toBe(-250);
});

test("what an attachment had is what the next one begins with", () => {
  using link = new SimulatedLink(script);
  link.answer6 = server6();
  const it = new SimulatedAttachment(link, dualStack);
  it.begin();
  expect(it.attachment.formerLease()).toEqual({ address: undefined, isOurs: false, lease6: undefined });
  it.pass(1);
  const former = it.attachment.formerLease();
  expect(former).toMatchObject({ address: Uint8Array.of(192, 168, 77, 50), isOurs: true, lease6: { since: 1000 } });
  const next = new SimulatedAttachment(link, dualStack);
  next.begin(60, former);
  expect(next.pass(1).filter((one) => /^[A-Z]+ (from|to)/.test(one))).toEqual([
    "REQUEST to everybody",
    "CONFIRM from fe80::7 to everybody",
  ]);
  const another = new SimulatedAttachment(link);
  another.begin(60, { address: Uint8Array.of(192, 168, 77, 50), isOurs: false });
  expect(another.pass(1)[0]).toBe("DISCOVER to everybody");
});

test("an ADD whose container is deleted meanwhile fails", () => {
  using link = new SimulatedLink();
  const it = new SimulatedAttachment(link);
  it.begin();
  it.pass(1);
  it.attachment.close();
  expect(link.news()).toEqual(["ADD fails: the container was deleted meanwhile"]);
  expect([link.open, link.handles]).toEqual([0, 0]);
});
