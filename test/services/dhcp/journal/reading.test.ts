/** What the journal and the protocol write is read again as it was, and everything else is refused: it comes from others. */
import { expect, test } from "bun:test";
import {
  leaseOf6,
  type LeaseText6,
  leaseTextOf6,
  requireLease6,
} from "../../../../src/services/dhcp/journal/lease-text6.ts";
import {
  type LeaseText,
  leaseTextOf,
  offeredOf,
  requireLease,
} from "../../../../src/services/dhcp/journal/lease-text.ts";
import { endOfLeases, type LeaseRecord, LONG_AGO, readRecord } from "../../../../src/services/dhcp/journal/record.ts";
import { readLeaseOptions } from "../../../../src/services/dhcp/lease-options.ts";
import { readServiceRequest, type ServiceRequest } from "../../../../src/services/dhcp/service-protocol.ts";
import { recordOf, usualOptions } from "../../../support/dhcp/lease-record.ts";

const lease: LeaseText = {
  ...{ address: "10.1.0.9/24", server: "10.1.0.1", routers: ["10.1.0.1"], isClassless: true },
  routes: [{ destination: "10.2.0.0/16", gateway: "10.1.0.2" }, { destination: "10.3.0.0/16" }],
  ...{ nameServers: ["10.1.0.53"], domain: "example", search: ["a.example"], timeServers: ["10.1.0.123"] },
  ...{ mtu: 1400, broadcast: "10.1.0.255", lease: 100, renew: 50, rebind: null },
};
const bare: LeaseText = {
  ...{ address: "10.1.0.9/24", server: "10.1.0.1", routers: [], isClassless: false, nameServers: [], search: [] },
  ...{ timeServers: [], lease: null, renew: null, rebind: null },
};
const lease6: LeaseText6 = {
  ...{ address: "fd00::9", server: "0102", preferred: 60, valid: null, renew: 30, rebind: 48 },
  ...{ nameServers: ["fd00::53"], search: ["a.example"], timeServers: ["fd00::123"] },
};
const bare6: LeaseText6 = {
  ...{ address: "fd00::9", server: "01", preferred: null, valid: null, renew: null, rebind: null },
  ...{ nameServers: [], search: [], timeServers: [] },
};
const record = recordOf("c1", {
  cookie: "01",
  v4: { lease, since: 5, sinceWall: 1000, serverMac: "02:00:00:00:00:01", origin: { server: "10.1.0.1", mac: "" } },
  v6: { lease: lease6, since: 5, sinceWall: 2000, linkLocal: "fe80" },
});

const copyOf = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));

test("leases as text, and back", () => {
  for (const one of [lease, bare]) expect(copyOf(leaseTextOf(offeredOf(one)))).toEqual(one);
  for (const one of [lease6, bare6]) expect(copyOf(leaseTextOf6(leaseOf6(one)))).toEqual(one);
  expect(offeredOf(bare).times).toEqual({ lease: Infinity, renew: Infinity, rebind: Infinity });
  expect(leaseOf6(lease6)).toMatchObject({
    preference: 0,
    status: { code: 0, text: "" },
    binding: { valid: Infinity },
  });
});

test("a record is read as it was written", () => {
  for (const one of [record, { ...record, v4: undefined }, { ...record, v6: undefined, cookie: undefined }]) {
    expect(readRecord(JSON.stringify(one))).toEqual(copyOf(one) as LeaseRecord);
  }
});

test("the end of a record is that of the lease that lasts longer", () => {
  expect(endOfLeases({})).toBe(0);
  expect(endOfLeases({ v4: { ...record.v4!, lease: { ...lease, lease: 100 } } })).toBe(1100);
  expect(endOfLeases({ v6: { ...record.v6!, lease: { ...lease6, valid: 100 } } })).toBe(2100);
  expect(endOfLeases({ ...record, v6: { ...record.v6!, lease: { ...lease6, valid: 100 } } })).toBe(2100);
  expect(
    endOfLeases({
      v4: { ...record.v4!, lease: { ...lease, lease: 5000 } },
      v6: { ...record.v6!, lease: { ...lease6, valid: 1 } },
    }),
  )
    .toBe(6000);
  expect([endOfLeases({ v4: { ...record.v4!, lease: bare } }), endOfLeases({ v6: record.v6 })]).toEqual([
    Infinity,
    Infinity,
  ]);
  expect(LONG_AGO).toEqual({ since: 0, sinceWall: 0 });
});

/** Each with one value changed, by its path. */
const wrong: [path: string, value: unknown][] = [
  ["format", 2],
  ...["network", "containerId", "ifName", "netnsPath", "mac", "bootId"].flatMap((
    key,
  ): [string, unknown][] => [[key, 5], [key, undefined]]),
  ["mac", "02:00"],
  ["wishes", undefined],
  ["wishes.broadcast", "yes"],
  ["v4", {}],
  ["v4.serverMac", undefined],
  ["v4.origin.server", 5],
  ["v4.origin.mac", undefined],
  ["v4.since", "5"],
  ["v4.sinceWall", undefined],
  ["v4.lease", undefined],
  ["v4.lease.address", "10.1.0.9/33"],
  ["v4.lease.lease", "5"],
  ["v6", {}],
  ["v6.since", undefined],
  ["v6.sinceWall", "5"],
  ["v6.lease", undefined],
  ["v6.lease.address", "10.1.0.9"],
  ["v6.linkLocal", "fe8"],
  ["v6.linkLocal", undefined],
];
test.each(wrong)("a record whose %s is %j is none", (path, value) => {
  const text = JSON.stringify(changed(record, path, value));
  expect(() => readRecord(text)).toThrow();
});

function changed(whole: unknown, path: string, value: unknown): unknown {
  const copy = copyOf(whole), keys = path.split("."), last = keys.pop()!;
  const within = keys.reduce((one, key) => one[key] as never, copy as Record<string, unknown>);
  within[last] = value;
  return copy;
}

test("what is no object is no record and no lease", () => {
  for (const text of ["5", "[]", "null", "{"]) expect(() => readRecord(text)).toThrow();
  for (const value of [undefined, null, 5, "text", []]) {
    expect(() => requireLease(value)).toThrow();
    expect(() => requireLease6(value)).toThrow();
    expect(() => readLeaseOptions(value)).toThrow();
  }
});

test.each<[keyof typeof usualOptions, good: unknown[], bad: unknown[]]>([
  ["clientId", [undefined, "", "00ff"], [5, "0", "0g", "FF"]],
  ["wanted", [[], [0, 255]], [undefined, 5, [-1], [256], [1.5], ["1"]]],
  ["provided", [[], [[0, "00"], [255, ""]]], [undefined, [5], [[1]], [[1, "00", 5]], [["1", "00"]], [[1, "0"]], [[
    300,
    "00",
  ]], "ab"]],
  ["broadcast", [true, false], [undefined, 1]],
  ["probe", ["none", "fast", "full"], [undefined, "slow"]],
  ["servers", [[], ["10.0.0.1"]], [undefined, [5]]],
  ["denied", [[], ["10.0.0.1"]], [undefined, "10.0.0.1"]],
  ["onExpiry", ["remove", "down", "keep"], [undefined, "up"]],
  ["ignored", [[], ["routers", "routes", "dns", "mtu"]], [undefined, ["all"]]],
  ["priority", [0, 5], [undefined, "5"]],
  // Records of builds that did not know them have none.
  ["routes", [
    undefined,
    [],
    [{ dst: "10.3.0.0/16" }, {
      dst: "fd00::/64",
      gw: "fe80::1",
      mtu: 1400,
      advmss: 9,
      priority: 1,
      table: 7,
      scope: 0,
    }],
  ], [{}, ["10.3.0.0/16"], [{}], [{ dst: "10.3.0.0" }], [{ dst: "10.3.0.0/16", gw: "" }], [{
    dst: "10.3.0.0/16",
    gw: 5,
  }], ...["mtu", "advmss", "priority", "table", "scope"].map((key) => [{ dst: "10.3.0.0/16", [key]: "5" }])]],
  ["v4", [true, false], [undefined, "yes"]],
  ["v6", [undefined, { duid: "01", iaid: "02" }], [5, null, {}, { duid: "01" }, { iaid: "02" }, {
    duid: "0",
    iaid: "02",
  }]],
  ["required", [[], ["ipv4", "ipv6"]], [undefined, ["ipv5"]]],
  ["timeout", [undefined, 5], ["5"]],
  ["hostLink", [undefined, "br0"], [5]],
])("wishes: %s", (key, good, bad) => {
  for (const value of good) {
    const wishes = { ...usualOptions, [key]: value };
    expect(readLeaseOptions(wishes)).toBe(wishes as never);
  }
  for (const value of bad) {
    expect(() => readLeaseOptions({ ...usualOptions, [key]: value })).toThrow(`${key} of the wishes is wrong: `);
  }
});

const owner = { network: "net", containerId: "c1", ifName: "eth0" };
const requests: ServiceRequest[] = [
  { do: "acquire", owner, netnsPath: "/run/netns/c1", wishes: usualOptions },
  { do: "check", owner },
  { do: "release", owner },
  { do: "list", network: "net", after: "" },
  { do: "list", network: "net", after: "c1" },
  { do: "report", network: "net" },
];
test.each(requests)("a request: %j", (request) => {
  const line = { version: 1, ...request };
  expect(readServiceRequest(JSON.stringify(line))).toEqual(copyOf(line));
});

test.each<[object, string]>([
  [{ do: "dance" }, 'nobody knows how to do "dance"'],
  [{ ...requests[0], netnsPath: undefined }, "netnsPath is missing"],
  [{ ...requests[0], owner: undefined }, "owner is wrong"],
  [{ ...requests[0], wishes: undefined }, "wishes are missing"],
  [{ ...requests[0], wishes: { ...usualOptions, v4: 5 } }, "v4 of the wishes is wrong: 5"],
  ...["check", "release"].flatMap((what): [object, string][] => [
    [{ do: what }, "owner is wrong"],
    [{ do: what, owner: { ...owner, ifName: "" } }, "owner is wrong"],
    [{ do: what, owner: { ...owner, ifName: 5 } }, "owner is wrong"],
    [{ do: what, owner: { ...owner, containerId: "a/b" } }, "owner is wrong"],
    [{ do: what, owner: { ...owner, network: "a\0b" } }, "owner is wrong"],
  ]),
  [{ do: "list", network: "net" }, "network or after is missing"],
  [{ do: "list", network: "", after: "" }, "network or after is missing"],
  [{ do: "list", network: 5, after: "" }, "network or after is missing"],
  [{ do: "report" }, "network is missing"],
  [{ do: "report", network: "" }, "network is missing"],
])("no request: %j", (request, problem) => {
  expect(() => readServiceRequest(JSON.stringify({ version: 1, ...request }))).toThrow(
    `malformed request: ${problem}`,
  );
});

test("a request of another version says so, whatever else it is", () => {
  for (const line of ['{"version":2}', "{}", "[]", "5"]) {
    expect(() => readServiceRequest(line)).toThrow(
      expect.objectContaining({
        message: expect.stringMatching(/^the plugin speaks version (2|undefined), the service 1$/),
        hint: "restart the service, so that both are of one version",
      }),
    );
  }
});
