/** The service in simulated time: what it answers, whom it refuses, and what it remembers of who has gone. */
import { closeSync, openSync } from "node:fs";
import { expect, spyOn, test } from "bun:test";
import { Journal, recordsIn } from "../../../../src/services/dhcp/journal/journal.ts";
import type { NetworkReport, ServiceRequest } from "../../../../src/services/dhcp/service-protocol.ts";
import { V4Lease } from "../../../../src/services/dhcp/service/v4-lease.ts";
import { dualStack } from "../../../support/dhcp/simulated-attachment.ts";
import { server6 } from "../../../support/dhcp/simulated-frames.ts";
import { SERVER_MAC } from "../../../support/dhcp/simulated-link.ts";
import { value } from "../../../support/dhcp/offer.ts";
import { BOOTED, SimulatedService } from "../../../support/dhcp/simulated-service.ts";

const script = { address: "192.168.77.50", leaseSeconds: 1000 };
const owner = (containerId: string, network = "net") => ({ network, containerId, ifName: "eth0" });
const released = `RELEASE from 192.168.77.50 to 192.168.77.1 at ${SERVER_MAC}`;

test("a descriptor that comes with another request than ADD's is closed", () => {
  using it = new SimulatedService(script).begin();
  const file = openSync("/dev/null", "r");
  it.ask({ do: "report", network: "net" }, file);
  expect(() => closeSync(file)).toThrow();
});

test("who asks has a lease, is told of it whenever it asks again, and gives it back", () => {
  using it = new SimulatedService(script).begin();
  it.add("c1");
  expect(it.pass(1)).toEqual([
    "DISCOVER to everybody",
    "REQUEST to everybody",
    "addresses are watched: groups 5 and 9",
    "c1 gets 192.168.77.50/24",
  ]);
  expect(it.check("c1")).toMatchObject({ version: 1, lease: { address: "192.168.77.50/24" } });
  expect(recordsIn(it.directory).map(({ record: { containerId } }) => containerId)).toEqual(["c1"]);
  it.pass(20);
  it.release("c1");
  expect([it.link.news(), recordsIn(it.directory), it.check("c1")]).toEqual([[released], [], {
    version: 1,
    failure: "no lease is held for c1/net/eth0",
  }]);
  it.release("c1");
  expect([it.link.news(), it.link.handles, it.link.open]).toEqual([[], 0, 0]);
});

test("the log says of each lease when it ends", () => {
  using it = new SimulatedService({ ...script, options: { 58: value.u32(100), 59: value.u32(200) } }).begin();
  const dateIn = (seconds: number) => new Date((BOOTED + it.now + seconds) * 1000).toISOString();
  const acquired = `c1/net/eth0: lease acquired, expiration is ${dateIn(1000)}`;
  it.add("c1");
  it.pass(0);
  expect(it.link.log).toEqual(["c1/net/eth0: acquiring lease", acquired]);
  const { log } = it.link;
  it.pass(99);
  const [renewed] = log.slice(2) as [string];
  expect(renewed).toStartWith("c1/net/eth0: lease renewed, expiration is 20");
  expect(renewed > acquired).toBe(true);
  it.link.script({ ...script, leaseSeconds: 0xffffffff });
  it.add("c2");
  it.pass(0);
  expect(log).toContain("c2/net/eth0: lease acquired, expiration is never");
  it.link.answer6 = server6();
  it.add("c3", { ...dualStack, v4: false, required: ["ipv6"] });
  it.pass(0);
  expect(log).toContain(`c3/net/eth0: lease acquired, expiration is ${dateIn(1000)}`);
});

test("a lease that has ended is none", () => {
  using it = new SimulatedService(script).begin();
  it.add("c1");
  it.pass(1);
  it.link.script(undefined);
  it.pass(1000);
  expect(it.check("c1")).toMatchObject({ failure: "the lease of c1/net/eth0 has ended" });
  // While its link is there, it goes on asking; then nobody holds it.
  expect(it.list()).toEqual(["c1"]);
  it.link.gone = "no such link";
  it.pass(100);
  expect([it.list(), it.check("c1")]).toEqual([
    [],
    expect.objectContaining({ failure: "no lease is held for c1/net/eth0" }),
  ]);
});

test.each([
  [{}, {}, 60],
  [{ timeout: 7 }, {}, 7],
  [{}, { patience: 9 }, 9],
  [{ timeout: 7 }, { patience: 9 }, 7],
])("options %j, flags %j: ADD gives up after %i seconds", (options, settings, seconds) => {
  using it = new SimulatedService(undefined, settings).begin();
  it.add("c1", options);
  expect(it.pass(seconds - 0.1).filter((one) => one.startsWith("c1"))).toEqual([]);
  expect(it.pass(0.1)).toContain("c1 fails: no more tries: no server has answered DISCOVER");
  expect([it.list(), it.link.handles]).toEqual([[], 0]);
});

test("a client that goes away takes its attachment along, unless another one waits, or it has its lease", () => {
  using it = new SimulatedService(undefined).begin();
  const only = it.add("c1");
  only.leave();
  expect(it.link.handles).toBe(0);
  const one = it.add("c2"), other = it.add("c2");
  one.leave();
  expect(it.link.handles).toBe(1);
  it.link.script(script);
  expect(it.pass(10)).toContain("c2 gets 192.168.77.50/24");
  other.leave();
  expect(it.check("c2")).toHaveProperty("lease");
});

test("an ADD that is repeated goes on with what there is, in the same namespace", () => {
  using it = new SimulatedService(script).begin();
  it.add("c1");
  it.add("c1");
  expect(it.pass(1).filter((one) => !one.includes("watched"))).toEqual([
    "DISCOVER to everybody",
    "REQUEST to everybody",
    "c1 gets 192.168.77.50/24",
    "c1 gets 192.168.77.50/24",
  ]);
  it.pass(20);
  expect([it.link.handles, it.add("c1").answered()]).toEqual([0, expect.objectContaining({ version: 1 })]);
  // In another one the address is asked for again, and the old namespace is left as it is.
  it.link.news();
  it.link.cookie = "another";
  it.add("c1");
  expect(it.pass(1).filter((one) => !one.includes("watched"))).toEqual([
    "REQUEST to everybody",
    "c1 gets 192.168.77.50/24",
  ]);
  it.pass(20);
  expect([it.list(), it.link.handles]).toEqual([["c1"], 0]);
});

test("an ADD is refused: without a namespace, in the host's own, for a rival's client id, for a link that is gone", () => {
  using it = new SimulatedService(script).begin();
  const acquire: ServiceRequest = {
    do: "acquire",
    owner: owner("c0"),
    netnsPath: "",
    wishes: { clientId: "01" } as never,
  };
  expect(it.ask(acquire)).toEqual({ version: 1, failure: "the request has no namespace with it" });
  const own = openSync("/proc/thread-self/ns/net", "r");
  expect(it.add("c1", {}, { netns: own }).answered()).toMatchObject({
    failure: "the namespace of the request is the host's own",
  });
  expect(() => closeSync(own)).toThrow();
  it.add("c1", { clientId: "0102" });
  const file = openSync("/dev/null", "r");
  expect(it.add("c2", { clientId: "0102" }, { netns: file }).answered()).toMatchObject({
    failure: "c1/net/eth0 has the same client id; servers tell clients of a network apart by it",
  });
  expect(() => closeSync(file)).toThrow();
  for (const [clientId, network] of [["0102", "other"], ["0103", "net"], [undefined, "net"]] as const) {
    expect(it.add(`c-${clientId}-${network}`, { clientId }, { network }).answered()).toBeUndefined();
  }
  // Without a client id they are told apart by their hardware addresses.
  expect(it.add("c3", { clientId: undefined }).answered()).toBeUndefined();
  expect(it.add("c1", { clientId: "0102" }).answered()).toBeUndefined();
  const { log } = it.link, said = log.length;
  it.link.gone = "Link not found";
  expect(it.add("c4").answered()).toMatchObject({ failure: "Link not found" });
  expect(log.slice(said)).toEqual([]);
});

test("what is wrong on our side is in the log, too, and leaves nothing open", () => {
  using it = new SimulatedService(script).begin();
  it.link.netlink.failure = new Error("out of memory");
  Object.assign(it.link.link, { up: false });
  expect(it.add("c1").answered()).toMatchObject({ failure: "out of memory" });
  expect([it.link.log.at(-1), it.link.handles, it.list()]).toEqual(["c1/net/eth0: out of memory", 0, []]);
});

test("who comes again asks for its address, from this service and from the next one", () => {
  using it = new SimulatedService(script).begin();
  const wished = () =>
    it.link.packets.findLast(({ what }) => what === "DISCOVER to everybody")!.bytes.toHex()
      .includes("3204c0a84d32");
  it.add("c1");
  it.pass(1);
  expect(wished()).toBe(false);
  it.release("c1");
  it.add("c1");
  expect(wished()).toBe(true);
  it.release("c1");
  it.add("c2");
  expect(wished()).toBe(false);
  it.service.close();
  it.begin();
  it.add("c1");
  expect(wished()).toBe(true);
});

test("a list: of one network, in order, of held leases only, and those after a name", () => {
  using it = new SimulatedService(script).begin();
  for (const name of ["b", "c", "a"]) it.add(name);
  it.add("z", {}, { network: "other" });
  expect(it.list()).toEqual([]);
  it.pass(1);
  expect([it.list(), it.list("a/net/eth0"), it.list("b/net/eth00"), it.list("", "other")]).toEqual([
    ["a", "b", "c"],
    ["b", "c"],
    ["c"],
    ["z"],
  ]);
});

test("a report: why the last ADD got nothing, for a minute or until somebody has a lease, and what no server renews", () => {
  using it = new SimulatedService(undefined).begin();
  const report = () => it.report() as NetworkReport;
  expect(report()).toEqual({ unanswered: 0 });
  it.add("c1", { timeout: 5 });
  it.pass(5);
  const obstacle = "no server has answered DISCOVER";
  expect(report()).toEqual({ obstacle, forgottenInS: 60, unanswered: 0 });
  expect(it.report("other")).toEqual({ unanswered: 0 });
  it.pass(0.5);
  expect(report().forgottenInS).toBe(60);
  it.pass(59.4);
  expect(report().forgottenInS).toBe(1);
  it.pass(0.1);
  expect(report()).toEqual({ unanswered: 0 });
  it.add("c1", { timeout: 5 });
  it.pass(5);
  it.link.script(script);
  it.add("c1");
  it.pass(1);
  expect(report()).toEqual({ unanswered: 0 });
  it.link.script(undefined);
  it.pass(800);
  expect(report()).toEqual({ unanswered: 0 });
  it.pass(100);
  expect([report(), it.report("other")]).toEqual([{ unanswered: 1 }, { unanswered: 0 }]);
});

test("a service that is not needed ends; a lease, a client and a request are a need", () => {
  using it = new SimulatedService(script, { idleAfter: 30 }).begin();
  it.pass(29.9);
  expect(it.hasEnded).toBe(false);
  it.report();
  it.pass(29.9);
  expect(it.hasEnded).toBe(false);
  it.areConnected = true;
  it.pass(100);
  expect(it.hasEnded).toBe(false);
  it.areConnected = false;
  it.add("c1");
  it.pass(400);
  expect(it.hasEnded).toBe(false);
  it.release("c1");
  it.pass(31);
  expect(it.hasEnded).toBe(true);
  // Without the option it stays.
  using other = new SimulatedService(script).begin();
  other.pass(100_000);
  expect(other.hasEnded).toBe(false);
});

test("the trouble of one container is not the others'", () => {
  using it = new SimulatedService(script).begin();
  it.add("c1");
  it.add("c2");
  using _defect = spyOn(V4Lease.prototype, "wake").mockImplementationOnce(() => {
    throw new Error("a defect");
  });
  expect(it.pass(1).filter((one) => one.startsWith("c"))).toEqual([
    "c2 gets 192.168.77.51/24",
    "c1 gets 192.168.77.50/24",
  ]);
  expect(it.link.log.find((one) => one.startsWith("c1/net/eth0: Error: a defect"))).toBeDefined();
});

test("flags say how ADD asks: the pauses, and for answers that everybody receives", () => {
  using it = new SimulatedService(undefined, { timeout: 2, longestPause: 3, broadcast: true }).begin();
  it.add("c1");
  it.pass(1.7);
  expect(it.link.packets.length).toBe(1);
  it.pass(0.6);
  expect(it.link.packets.length).toBe(2);
  it.pass(9);
  expect(it.link.packets.length).toBe(5);
  // The flags of BOOTP, behind the headers of IP and UDP.
  expect(it.link.packets[0]!.bytes.subarray(38, 40).toHex()).toBe("8000");
});

test("the end of the service leaves the leases, and nothing open", () => {
  using it = new SimulatedService(script).begin();
  it.add("c1");
  it.pass(1);
  expect(Journal.isHeld(it.directory)).toBe(true);
  it.service.close();
  expect([it.link.handles, it.link.open, Journal.isHeld(it.directory)]).toEqual([0, 0, false]);
  expect(it.link.news()).toEqual(["addresses are not watched"]);
  expect(recordsIn(it.directory).length).toBe(1);
  expect(it.link.log.at(-1)).toBe("1 lease stays");
});
