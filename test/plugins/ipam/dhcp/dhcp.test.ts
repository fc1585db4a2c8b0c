/** What the plugin asks the service, what it makes of the answer, and what it does when there is none. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import type { Attachment } from "../../../../src/contract/plugin.ts";
import { EarlierFailure } from "../../../../src/contract/failures.ts";
import * as asking from "../../../../src/services/dhcp/ask.ts";
import { Failed, NoAnswer, NoService } from "../../../../src/services/dhcp/ask.ts";
import { Journal, recordsIn } from "../../../../src/services/dhcp/journal/journal.ts";
import type { LeaseText } from "../../../../src/services/dhcp/journal/lease-text.ts";
import type { LeaseText6 } from "../../../../src/services/dhcp/journal/lease-text6.ts";
import type { Answer, ServiceRequest } from "../../../../src/services/dhcp/service-protocol.ts";
import * as links from "../../../../src/ffi/netlink/route/link.ts";
import dhcp from "../../../../src/plugins/ipam/dhcp/dhcp.ts";
import type { DhcpConf } from "../../../../src/plugins/ipam/dhcp/dhcp.schema.ts";
import { validateDhcpConf } from "../../../../src/plugins/ipam/dhcp/dhcp.validate.gen.ts";
import { recordOf } from "../../../support/dhcp/lease-record.ts";

const owner = { network: "net", containerId: "c1", ifName: "eth0" };
const lease: LeaseText = {
  address: "10.1.0.9/24",
  server: "10.1.0.1",
  routers: ["10.1.0.1", "10.1.0.2"],
  isClassless: false,
  nameServers: ["10.1.0.53"],
  domain: "example",
  search: ["a.example"],
  timeServers: [],
  ...{ lease: 100, renew: 50, rebind: 80 },
};
const lease6: LeaseText6 = {
  address: "fd00::9",
  server: "01",
  ...{ preferred: 1, valid: 2, renew: 1, rebind: 1 },
  ...{ nameServers: ["fd00::53"], search: ["a.example", "b.example"], timeServers: [] },
};

let directory: string;
/** What was asked: the place, the request, the patience, the namespace. */
let asked: [path: string, request: ServiceRequest, patienceMs: number, netns: number | undefined][];
let answers: (Answer | Error)[];
let spies: { mockRestore(): void }[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-dhcp-"));
  [asked, answers] = [[], []];
  spies = [
    spyOn(asking, "ask").mockImplementation((...call) => {
      asked.push(call as typeof asked[number]);
      const answer = answers.length > 1 ? answers.shift() : answers[0];
      if (answer instanceof Error) throw answer;
      return answer as never;
    }),
    spyOn(links, "linkMac").mockImplementation(() => "02:00:00:00:00:03"),
  ];
});
afterEach(() => {
  for (const spy of spies) spy.mockRestore();
  rmSync(directory, { recursive: true });
});

const conf = (ipam: Record<string, unknown> = {}): DhcpConf =>
  validateDhcpConf({
    cniVersion: "1.1.0",
    name: "net",
    type: "macvlan",
    ipam: { type: "dhcp", dataDir: directory, ...ipam },
  });
const at = (ipam: Record<string, unknown> = {}, more = {}) =>
  ({
    ...owner,
    conf: conf(ipam),
    cniArgs: "",
    netnsPath: "/run/netns/c1",
    host: { container: { netnsFd: 5 } },
    inAdd: <Value>(work: () => Value) => work(),
    ...more,
  }) as unknown as Attachment<DhcpConf>;

/** The error that `work` throws. */
function thrown(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

function keep(...containers: string[]): void {
  const journal = Journal.open(directory)!;
  for (const containerId of containers) {
    journal.write(recordOf(containerId, { v4: { lease, since: 0, sinceWall: 0, serverMac: "" } }), false);
  }
  journal.close();
}

const givenUp = () =>
  recordsIn(directory).filter((one) => one.isToBeReleased).map(({ record }) => record.containerId).sort();

test("ADD asks for a lease, for as long as it takes, and answers what it brings", () => {
  answers = [{ version: 1, lease, lease6 }];
  expect(dhcp.add(at())).toEqual({
    cniVersion: "1.1.0",
    ips: [{ address: "10.1.0.9/24", gateway: "10.1.0.1" }, { address: "fd00::9/128" }],
    routes: [{ dst: "0.0.0.0/0", gw: "10.1.0.1" }],
    dns: { nameservers: ["10.1.0.53", "fd00::53"], domain: "example", search: ["a.example", "b.example"] },
  });
  const [[path, request, patienceMs, netns]] = asked as [typeof asked[number]];
  expect([path, netns, patienceMs]).toEqual(["/run/cni/dhcp.sock", 5, 24 * 3600 * 1000]);
  expect(request).toMatchObject({ do: "acquire", owner, netnsPath: "/run/netns/c1", wishes: { broadcast: false } });
});

test.each([
  [{}, { lease6 }, {
    ips: [{ address: "fd00::9/128" }],
    dns: { nameservers: ["fd00::53"], search: ["a.example", "b.example"] },
  }],
  [{ ignore: ["routers", "dns"] }, { lease }, { ips: [{ address: "10.1.0.9/24" }] }],
  [{ ignore: ["routers"] }, { lease: { ...lease, nameServers: [], search: [] } }, {
    ips: [{ address: "10.1.0.9/24" }],
    dns: { domain: "example" },
  }],
  [{ ignore: ["routers"] }, { lease: { ...lease, nameServers: [], search: [], domain: undefined } }, {
    ips: [{ address: "10.1.0.9/24" }],
  }],
  [{ ignore: ["routers"] }, { lease: { ...lease, nameServers: [], domain: undefined } }, {
    ips: [{ address: "10.1.0.9/24" }],
    dns: { search: ["a.example"] },
  }],
  [{ priority: 3 }, { lease: { ...lease, routers: ["10.1.0.1"], nameServers: [], search: [], domain: undefined } }, {
    ips: [{ address: "10.1.0.9/24", gateway: "10.1.0.1" }],
    routes: [{ dst: "0.0.0.0/0", gw: "10.1.0.1", priority: 3 }],
  }],
  [{ routes: [{ dst: "10.3.0.0/16" }, { dst: "0.0.0.0/0", gw: "10.1.0.3", priority: 7 }], priority: 3 }, {
    lease: { ...lease, nameServers: [], search: [], domain: undefined },
  }, {
    ips: [{ address: "10.1.0.9/24", gateway: "10.1.0.1" }],
    routes: [{ dst: "10.3.0.0/16", gw: "10.1.0.1", priority: 3 }, { dst: "0.0.0.0/0", gw: "10.1.0.3", priority: 7 }],
  }],
  // The service adds those of a lease that comes later.
  [{ ipv6: true, routes: [{ dst: "10.3.0.0/16" }, { dst: "fd00:9::/64" }], ignore: ["dns"] }, { lease6 }, {
    ips: [{ address: "fd00::9/128" }],
    routes: [{ dst: "fd00:9::/64" }],
  }],
  [{ ipv6: true, routes: [{ dst: "10.3.0.0/16" }, { dst: "fd00:9::/64" }], ignore: ["dns", "routers"] }, { lease }, {
    ips: [{ address: "10.1.0.9/24" }],
    routes: [{ dst: "10.3.0.0/16", gw: "0.0.0.0", scope: 253 }],
  }],
])("of %j a lease brings its part", (ipam, leases, result) => {
  answers = [{ version: 1, ...leases } as Answer];
  expect(JSON.parse(JSON.stringify(dhcp.add(at(ipam))))).toEqual({ cniVersion: "1.1.0", ...result });
});

test("ADD fails without a namespace, without a service, and with what the service says", () => {
  expect(() => dhcp.add(at({}, { host: {} }))).toThrow('failed to Statfs "/run/netns/c1": no such file or directory');
  answers = [new Failed("no server", "look")];
  expect(thrown(() => dhcp.add(at()))).toMatchObject({
    code: 999,
    message: "error calling DHCP.Allocate: no server",
    details: "look",
  });
  answers = [new NoService("nobody listens")];
  expect(thrown(() => dhcp.add(at()))).toMatchObject({
    code: 999,
    message: "nobody listens",
    details: 'start "patchbay dhcp", or the unit cni-dhcp.service',
  });
  answers = [new Error("a defect")];
  expect(thrown(() => dhcp.add(at()))).toBe(answers[0]);
});

test("where nothing is made, the result is the one before, and a plan has the lease that is held", () => {
  const nothing = { inAdd: () => undefined };
  expect(dhcp.add(at({}, nothing))).toEqual({ cniVersion: "1.1.0" });
  expect(dhcp.add(at({}, { ...nothing, prevResult: { ips: [] } }))).toEqual({ ips: [] } as never);
  keep("c1", "c2");
  expect(dhcp.foresee!(at())).toMatchObject({ ips: [{ address: "10.1.0.9/24" }] });
  const routes = [{ dst: "10.3.0.0/16" }];
  expect(dhcp.foresee!(at({ routes })).routes).toContainEqual({ dst: "10.3.0.0/16", gw: "10.1.0.1" });
  expect(dhcp.foresee!(at({ routes }, { containerId: "c3" }))).toEqual({ cniVersion: "1.1.0", ips: [] });
  expect(asked).toEqual([]);
});

test("CHECK tells what the service says, or that there is none", () => {
  answers = [{ version: 1 }];
  expect(dhcp.check!(at())).toEqual([]);
  expect(asked[0]!.slice(1)).toEqual([{ do: "check", owner }, 30_000, undefined]);
  answers = [new Failed("no lease is held")];
  expect(dhcp.check!(at())).toEqual(["dhcp: no lease is held"]);
  answers = [new NoService("nobody listens")];
  expect(dhcp.check!(at())).toEqual([
    'nobody listens; start "patchbay dhcp", or the unit cni-dhcp.service',
  ]);
  answers = [new Error("a defect")];
  expect(() => dhcp.check!(at())).toThrow("a defect");
});

test("DEL asks the service; a service that fails makes it fail", () => {
  keep("c1");
  answers = [{ version: 1 }];
  // Go's plugin ignores routes, malformed ones too.
  dhcp.del!(at({ routes: [{ dst: "x" }, { gw: "y" }] }));
  expect(asked.map(([, request, patienceMs]) => [request, patienceMs])).toEqual([[{ do: "release", owner }, 30_000]]);
  answers = [new Failed("out of memory")];
  expect(() => dhcp.del!(at())).toThrow("error calling DHCP.Release: out of memory");
  expect(givenUp()).toEqual([]);
});

test("DEL without a service leaves a note for the one that comes, for this container only", () => {
  answers = [new NoService("nobody listens")];
  keep("c1", "c2");
  dhcp.del!(at());
  expect(givenUp()).toEqual(["c1"]);
  answers = [new NoAnswer("another program")];
  dhcp.del!(at({}, { containerId: "c2" }));
  expect(givenUp()).toEqual(["c1", "c2"]);
  // Where no service has ever been, there is nothing to note.
  const nowhere = join(directory, "none");
  dhcp.del!(at({ dataDir: nowhere }));
  expect(recordsIn(nowhere)).toEqual([]);
});

test("DEL waits for a service that has its journal and does not listen yet", () => {
  keep("c1");
  const starting = Journal.open(directory)!;
  answers = [new NoService("nobody listens"), new NoService("nobody listens"), { version: 1 }];
  dhcp.del!(at());
  starting.close();
  expect([asked.length, givenUp()]).toEqual([3, []]);
});

test("GC gives back what is not valid, of this network, list by list", () => {
  const named = (containerId: string, network = "net") => ({ ...owner, containerId, network });
  answers = [
    { version: 1, owners: [named("a"), named("b")] },
    { version: 1, owners: [named("c")] },
    // A list that does not go on ends the asking.
    { version: 1, owners: [named("c")] },
    { version: 1 },
  ];
  dhcp.gc!(conf(), ({ containerId }) => containerId === "b", undefined as never);
  expect(asked.map(([, request]) => request)).toEqual([
    ...["", "b/net/eth0", "c/net/eth0"].map((after): ServiceRequest => ({ do: "list", network: "net", after })),
    ...["a", "c"].map((name): ServiceRequest => ({ do: "release", owner: named(name) })),
  ]);
  keep("c1", "c2");
  answers = [new NoService("nobody listens")];
  dhcp.gc!(conf(), ({ containerId }) => containerId === "c2", undefined as never);
  expect(givenUp()).toEqual(["c1"]);
});

test("STATUS tells how the leases of the network are doing", () => {
  const status = () => thrown(() => dhcp.status!(conf(), undefined as never, {}));
  answers = [{ version: 1, report: { unanswered: 0 } }];
  dhcp.status!(conf(), undefined as never, {});
  expect(asked[0]!.slice(1, 3)).toEqual([{ do: "report", network: "net" }, 30_000]);
  answers = [{ version: 1 }];
  dhcp.status!(conf(), undefined as never, {});
  answers = [{ version: 1, report: { unanswered: 1, obstacle: "silence", forgottenInS: 9 } }];
  expect(status()).toMatchObject({ code: 51, message: 'no server renews 1 leases of network "net"' });
  answers = [{ version: 1, report: { unanswered: 0, obstacle: "silence", forgottenInS: 9 } }];
  expect(status()).toBeInstanceOf(EarlierFailure);
  expect(status()).toMatchObject({
    code: 50,
    message: "the last ADD got no address: silence",
    details: "look at the DHCP server; STATUS succeeds again in 9 s unless another ADD fails",
  });
  answers = [new Error("a defect")];
  expect(status()).toBe(answers[0]);
});

test("STATUS without a service: nothing is available, and of leases that are held nobody renews any", () => {
  const status = (network = conf()) => thrown(() => dhcp.status!(network, undefined as never, {}));
  const start = 'start "patchbay dhcp", or the unit cni-dhcp.service';
  answers = [new NoService("nobody listens")];
  expect(status()).toMatchObject({ code: 50, message: "nobody listens", details: start });
  keep("c1");
  expect(status()).toMatchObject({
    code: 51,
    message: "nobody listens",
    details: `${start}; nobody renews the leases of this network`,
  });
  answers = [new NoAnswer("another program", "end it")];
  expect(status()).toMatchObject({ code: 51, details: "end it; nobody renews the leases of this network" });
  // One that refuses us renews them all the same.
  answers = [new Failed("not you", "be root")];
  expect(status()).toMatchObject({ code: 50, message: "not you", details: "be root" });
  answers = [new NoService("nobody listens")];
  expect(status({ ...conf(), name: "other" })).toMatchObject({ code: 50 });
});

test("a configuration without ipam is refused", () => {
  expect(() => dhcp.judge!({ ...conf(), ipam: undefined }, undefined)).toThrow("IPAM config missing 'ipam' key");
  expect(() => dhcp.judge!(conf({ clientId: "name" }), undefined)).not.toThrow();
  expect(() => dhcp.judge!(conf({ clientId: "name" }), { cniArgs: "" } as never)).toThrow("ipam.clientId");
  expect(() => dhcp.judge!(conf({ timeout: 0 }), undefined)).toThrow("ipam.timeout");
  expect(() => dhcp.judge!(conf({ routes: [{ dst: "x" }] }), undefined)).toThrow('ipam.routes[0].dst: "x"');
});
