/** host-local without a kernel: results, requested addresses, errors, and what a failed ADD releases. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Result } from "../../../../src/cni/result.ts";
import type { Attachment } from "../../../../src/contract/plugin.ts";
import plugin from "../../../../src/plugins/ipam/host-local/host-local.ts";
import type { HostLocalConf } from "../../../../src/plugins/ipam/host-local/host-local.schema.ts";
import { type LeaseDirectory, leaseDirectory } from "../../../support/lease-directory.ts";

interface Given {
  ipam?: Record<string, unknown>;
  rest?: Record<string, unknown>;
  containerId?: string;
  cniArgs?: string;
  prevResult?: Result;
  restating?: boolean;
}

function confOf({ path }: LeaseDirectory, { ipam = { subnet: "10.1.0.0/24" }, rest }: Given): HostLocalConf {
  const dataDir = path.slice(0, path.lastIndexOf("/"));
  return plugin.validate({
    cniVersion: "1.0.0",
    name: "net",
    ipam: { type: "host-local", dataDir, ...ipam },
    ...rest,
  });
}

function at(made: LeaseDirectory, given: Given = {}): Attachment<HostLocalConf> {
  const { containerId = "c1", cniArgs = "", prevResult, restating = false } = given;
  const inAdd = <Value>(work: () => Value) => restating ? undefined : work();
  const facts = { containerId, ifName: "eth0", netnsPath: "/run/netns/c1", network: "net" };
  // IPAM plugins do not use the rest of an attachment.
  return { ...facts, conf: confOf(made, given), cniArgs, prevResult, inAdd } as Attachment<HostLocalConf>;
}

const add = (made: LeaseDirectory, given?: Given) => plugin.add(at(made, given));
const addresses = (result: Result) => result.ips!.map(({ address }) => address);
const sets = (...subnets: string[]) => ({ ranges: subnets.map((subnet) => [{ subnet }]) });

describe("ADD", () => {
  test("returns address and gateway without an interface, and the routes unchanged", () => {
    using made = leaseDirectory();
    const routes = [{ dst: "0.0.0.0/0" }, { dst: "10.5.0.0/16", gw: "10.1.0.3", mtu: 1400 }];
    expect(add(made, { ipam: { subnet: "10.1.0.0/24", routes } })).toEqual({
      cniVersion: "1.0.0",
      ips: [{ address: "10.1.0.2/24", gateway: "10.1.0.1" }],
      routes,
    });
    expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
  });

  test("numbers the sets: first the capability's, then the single range, then the list", () => {
    using made = leaseDirectory();
    const ipam = { subnet: "10.2.0.0/24", rangeStart: "10.2.0.9", ...sets("10.3.0.0/24", "fd03::/64") };
    const rest = { runtimeConfig: { ipRanges: [[{ subnet: "10.7.0.0/24" }], [{ subnet: "fd07::/64" }]] } };
    const result = add(made, { ipam, rest });
    expect(addresses(result)).toEqual(["10.7.0.2/24", "fd07::2/64", "10.2.0.9/24", "10.3.0.2/24", "fd03::2/64"]);
    const cursors = Bun.spawnSync(["sh", "-c", `cd ${made.path}; grep . last_*`]).stdout.toString();
    expect(cursors).toBe(
      "last_reserved_ip.0:10.7.0.2\nlast_reserved_ip.1:fd07::2\nlast_reserved_ip.2:10.2.0.9\n" +
        "last_reserved_ip.3:10.3.0.2\nlast_reserved_ip.4:fd03::2\n",
    );
  });

  test("leases what CNI_ARGS, args and the capability request, one of each set", () => {
    using made = leaseDirectory();
    const result = add(made, {
      ipam: sets("10.1.0.0/24", "10.2.0.0/24", "fd01::/64"),
      cniArgs: "IgnoreUnknown=1;K8S_POD_NAME=x;IP=10.1.0.5/16",
      rest: { args: { cni: { ips: ["10.2.0.6/24"] } }, runtimeConfig: { ips: ["fd01::7", "fd01::7"] } },
    });
    expect(addresses(result)).toEqual(["10.1.0.5/24", "10.2.0.6/24", "fd01::7/64"]);
  });

  const refusals: [string, Given, number, string][] = [
    ["no ipam", { rest: { ipam: null } }, 7, "IPAM config missing 'ipam' key"],
    ["no range", { ipam: {} }, 7, "no IP ranges specified"],
    [
      "a bad range",
      { ipam: sets("10.1.0.0/24", "10.2.0.0/31") },
      7,
      "invalid range set 1: Network 10.2.0.0/31 too small",
    ],
    [
      "two addresses of a family in an old version",
      { ipam: sets("10.1.0.0/24", "10.2.0.0/24"), rest: { cniVersion: "0.2.0" } },
      7,
      "CNI version 0.2.0 does not support more than 1 address per family",
    ],
    [
      "CNI_ARGS that are no address",
      { cniArgs: "IP=10.1.0" },
      4,
      'ARGS: error parsing value of pair "IP=10.1.0": invalid IP address 10.1.0',
    ],
    ["unknown CNI_ARGS", { cniArgs: "ip=10.1.0.1" }, 4, 'ARGS: unknown args ["ip=10.1.0.1"]'],
    [
      "a requested address outside all sets",
      { cniArgs: "IP=10.9.0.1", rest: { runtimeConfig: { ips: ["10.1.0.7", "fd09::1"] } } },
      999,
      "failed to allocate all requested IPs: 10.9.0.1 fd09::1",
    ],
    [
      "the gateway",
      { cniArgs: "IP=10.1.0.1" },
      999,
      "failed to allocate for range 0: requested ip 10.1.0.1 is subnet's gateway",
    ],
    [
      "a second set that has nothing left",
      { ipam: { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "10.2.0.0/24", rangeEnd: "10.2.0.1" }]] } },
      999,
      "failed to allocate for range 1: no IP addresses available in range set: 10.2.0.1-10.2.0.1",
    ],
    [
      "a resolvConf that cannot be read",
      { ipam: { subnet: "10.1.0.0/24", resolvConf: "/nowhere" } },
      5,
      "open /nowhere: no such file or directory",
    ],
  ];

  test.each(refusals.map(([what, ...rest]) => [what, rest] as const))(
    "refuses %s, and keeps nothing",
    (_, [given, code, message]) => {
      using made = leaseDirectory();
      expect(() => add(made, given)).toThrow(
        expect.objectContaining({ code, message: expect.stringContaining(message) }),
      );
      expect(made.files()).toEqual({});
    },
  );

  test("that fails in a later set releases what it leased, but not the attachment's earlier leases", () => {
    using made = leaseDirectory();
    add(made, { ipam: sets("10.2.0.0/24") });
    const both = { ipam: sets("10.1.0.0/24", "10.2.0.0/24") };
    expect(() => add(made, both)).toThrow(
      "failed to allocate for range 1: 10.2.0.2 has been allocated to c1, duplicate allocation is not allowed",
    );
    expect(made.files()).toEqual({ "10.2.0.2": "c1\r\neth0" });
  });

  test("reads DNS settings from resolvConf", () => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    const resolvConf = join(made.path, "resolv.conf");
    writeFileSync(resolvConf, "nameserver 10.9.9.9\nsearch a b\n");
    const { dns } = add(made, { ipam: { subnet: "10.1.0.0/24", resolvConf } });
    expect(dns).toEqual({ nameservers: ["10.9.9.9"], search: ["a", "b"] });
  });

  test("makes nothing while it only restates", () => {
    using made = leaseDirectory();
    const prevResult = { cniVersion: "1.0.0", ips: [{ address: "10.1.0.9/24" }] };
    expect(add(made, { restating: true, prevResult })).toEqual(prevResult);
    expect(add(made, { restating: true })).toEqual({ cniVersion: "1.0.0" });
    expect(made.files()).toEqual({});
  });

  test("reports an unwritable dataDir with its path", () => {
    using made = leaseDirectory();
    const conf = { ipam: { subnet: "10.1.0.0/24", dataDir: "/proc/nowhere" } };
    expect(() => add(made, conf)).toThrow("mkdir /proc/nowhere: no such file or directory");
  });
});

describe("DEL", () => {
  test("releases every set's address, with and without prevResult, and again", () => {
    using made = leaseDirectory();
    const ipam = sets("10.1.0.0/24", "fd01::/64");
    const prevResult = add(made, { ipam });
    plugin.del!(at(made, { ipam, prevResult }));
    expect(made.files()).toEqual({});
    add(made, { ipam });
    plugin.del!(at(made, { ipam }));
    plugin.del!(at(made, { ipam }));
    expect(made.files()).toEqual({});
  });

  test.each([
    ["other ranges", sets("10.9.0.0/24")],
    ["ranges that are wrong", { subnet: "10.1.0.7/24", rangeStart: "fd00::1" }],
    ["no ranges", {}],
  ])("works with %s", (_, ipam) => {
    using made = leaseDirectory();
    add(made);
    plugin.del!(at(made, { ipam, cniArgs: "nonsense" }));
    expect(made.files()).toEqual({});
  });
});

test("CHECK finds the attachment's lease, or reports that there is none", () => {
  using made = leaseDirectory();
  const prevResult = add(made);
  expect(plugin.check!(at(made, { prevResult }))).toEqual([]);
  expect(plugin.check!(at(made))).toEqual([]);
  plugin.del!(at(made));
  expect(plugin.check!(at(made, { prevResult }))).toEqual([
    "host-local: Failed to find address added by container c1",
  ]);
});

test("GC releases the leases of invalid attachments", () => {
  using made = leaseDirectory();
  add(made, { containerId: "c1" });
  add(made, { containerId: "c2" });
  plugin.gc!(confOf(made, {}), ({ containerId }) => containerId === "c2", undefined as never);
  expect(made.files()).toEqual({ "10.1.0.3": "c2\r\neth0" });
});

test("an IPv4 subnet in IPv6 form is rejected in every key", () => {
  using made = leaseDirectory();
  for (const subnet of ["::ffff:10.1.0.0/120", "::ffff:a01:0/112", "::ffff:0:0/90"]) {
    for (
      const given of [
        { ipam: { subnet } },
        { ipam: sets(subnet) },
        { ipam: {}, rest: { runtimeConfig: { ipRanges: [[{ subnet }]] } } },
      ]
    ) {
      expect(() => add(made, given)).toThrow(
        expect.objectContaining({ code: 7, message: "invalid range set 0: IPNet IP and Mask version mismatch" }),
      );
    }
  }
  // Existing leases can still be released.
  add(made);
  plugin.del!(at(made, { ipam: { subnet: "::ffff:10.1.0.0/120" } }));
  expect(made.files()).toEqual({});
});

test("STATUS succeeds when a set is full, which pools report, and makes nothing", () => {
  using made = leaseDirectory();
  const given = { ipam: { ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "10.2.0.0/30" }]] } };
  const conf = confOf(made, given), counts = () => plugin.pools!(conf).map((pool) => pool.count());
  const pools = () => counts().map(({ free, capacity }) => [free, capacity]);
  const status = (tested = conf) => plugin.status!(tested, undefined as never, {});
  status();
  expect(pools()).toEqual([[253, 253], [1, 1]]);
  expect(made.files()).toEqual({});
  add(made, given);
  status();
  expect(pools()).toEqual([[252, 253], [0, 1]]);
  expect(() => add(made, { ...given, containerId: "c2" })).toThrow(
    "no IP addresses available in range set: 10.2.0.1-10.2.0.2",
  );
});

test("STATUS fails when a set has no usable address, and when leases cannot be stored", () => {
  using made = leaseDirectory();
  const status = (ipam: Record<string, unknown>) => plugin.status!(confOf(made, { ipam }), undefined as never, {});
  expect(() => status({ subnet: "10.1.0.0/24", rangeStart: "10.1.0.1", rangeEnd: "10.1.0.1" })).toThrow(
    expect.objectContaining({ code: 50, message: "no IP addresses available in range set: 10.1.0.1-10.1.0.1" }),
  );
  const dataDir = `${made.path}.file`;
  writeFileSync(dataDir, "");
  expect(() => status({ subnet: "10.1.0.0/24", dataDir })).toThrow(
    expect.objectContaining({ code: 50, message: `no leases can be kept in ${dataDir}/net` }),
  );
});

test("quarantineSeconds and keepAcrossReboot reach the store", () => {
  using made = leaseDirectory();
  const ipam = { subnet: "10.1.0.0/30", quarantineSeconds: 3600, keepAcrossReboot: true };
  add(made, { ipam });
  plugin.del!(at(made, { ipam }));
  expect(() => add(made, { ipam })).toThrow(expect.objectContaining({ code: 11 }));
  expect(addresses(add(made, { ipam: { subnet: "10.1.0.0/30" } }))).toEqual(["10.1.0.2/30"]);
});
