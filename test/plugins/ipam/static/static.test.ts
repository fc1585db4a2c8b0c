/** The static plugin without a kernel: sources of addresses, errors, and CHECK. */
import { describe, expect, test } from "bun:test";
import type { Result } from "../../../../src/cni/result.ts";
import type { Attachment } from "../../../../src/contract/plugin.ts";
import plugin from "../../../../src/plugins/ipam/static/static.ts";
import type { StaticConf } from "../../../../src/plugins/ipam/static/static.schema.ts";

const both = { addresses: [{ address: "10.40.0.5/24", gateway: "10.40.0.1" }, { address: "fd40::5/64" }] };

interface Given {
  ipam?: Record<string, unknown> | null;
  rest?: Record<string, unknown>;
  cniArgs?: string;
  prevResult?: Result;
}

function at({ ipam = both, rest, cniArgs = "", prevResult }: Given): Attachment<StaticConf> {
  const conf = plugin.validate({ cniVersion: "1.0.0", name: "net", ipam, ...rest });
  return { conf, cniArgs, prevResult, ifName: "eth0", containerId: "c1" } as Attachment<StaticConf>;
}

const ips = (given: Given) => plugin.add(at(given)).ips;

describe("ADD", () => {
  test("returns the addresses in order, with routes and DNS", () => {
    const routes = [{ dst: "0.0.0.0/0" }];
    const dns = { nameservers: ["10.40.0.53"] };
    expect(plugin.add(at({ ipam: { ...both, routes, dns } }))).toEqual({
      cniVersion: "1.0.0",
      ips: both.addresses,
      routes,
      dns,
    });
  });

  test("no addresses are no error", () => expect(ips({ ipam: {} })).toEqual([]));

  test("CNI_ARGS adds addresses, and gateways to the addresses in their network", () => {
    const cniArgs = "IP=10.41.0.5/24, fd41::5/64;GATEWAY=10.41.0.1,FD41::1,10.40.0.9";
    expect(ips({ cniArgs })).toEqual([
      ...both.addresses,
      { address: "10.41.0.5/24", gateway: "10.41.0.1" },
      { address: "fd41::5/64", gateway: "fd41::1" },
    ]);
  });

  test("args replaces these, and the capability replaces everything", () => {
    const args = { cni: { ips: ["10.42.0.5/24"] } };
    expect(ips({ cniArgs: "IP=10.41.0.5/24", rest: { args } })).toEqual([{ address: "10.42.0.5/24" }]);
    const runtimeConfig = { ips: ["10.43.0.5/24", "fd43::5/64"] };
    expect(ips({ rest: { args, runtimeConfig } })).toEqual([{ address: "10.43.0.5/24" }, { address: "fd43::5/64" }]);
    expect(ips({ rest: { args: { cni: { ips: [] } }, runtimeConfig: { ips: [] } } })).toEqual(both.addresses);
  });

  const two = { addresses: [{ address: "10.1.0.1/8" }, { address: "11.2.0.1/8" }] };
  const refusals: [string, Given][] = [
    ["IPAM config missing 'ipam' key", { ipam: null }],
    ["the 'address' field is expected to be in CIDR notation, got: '10.40.0.5'", {
      ipam: { addresses: [{ address: "10.40.0.5" }] },
    }],
    ["the 'ip' field is expected to be in CIDR notation, got: '10.41.0.5'", { cniArgs: "IP=10.41.0.5" }],
    ["invalid gateway address: x", { cniArgs: "IP=10.41.0.5/24;GATEWAY=x" }],
    ["an entry in the 'ips' field is NOT in CIDR notation, got: '10.43.0.5'", {
      rest: { runtimeConfig: { ips: ["10.43.0.5"] } },
    }],
    ["CNI version 0.2.0 does not support more than 1 address per family", {
      ipam: two,
      rest: { cniVersion: "0.2.0" },
    }],
    ["CNI version 0.1.0 does not support more than 1 address per family", {
      ipam: { addresses: [{ address: "fd00::1/64" }, { address: "fd01::1/64" }] },
      rest: { cniVersion: "0.1.0" },
    }],
  ];
  test.each(refusals)("refuses: %s", (message, given) => {
    expect(() => ips(given)).toThrow(expect.objectContaining({ code: 7, message: expect.stringContaining(message) }));
  });

  test("an old version may have one address of each family, and a newer one two", () => {
    expect(ips({ rest: { cniVersion: "0.2.0" } })).toEqual(both.addresses);
    expect(ips({ ipam: two, rest: { cniVersion: "0.3.0" } })).toEqual(two.addresses);
  });
});

describe("CHECK", () => {
  const check = (...found: Result["ips"] & object) =>
    plugin.check!(at({ prevResult: { cniVersion: "1.0.0", ips: found } }));

  test("accepts the addresses, and a gateway that is not configured", () => {
    expect(check({ address: "10.40.0.5/24", gateway: "10.40.0.1" }, { address: "fd40::5/64", gateway: "fd40::1" }))
      .toStrictEqual([]);
  });

  test("reports a different gateway and a missing address", () => {
    expect(check({ address: "10.40.0.5/24", gateway: "10.40.0.9" })).toEqual([
      "static: Failed to match addr 10.40.0.5 on interface eth0",
      "static: Failed to find addr fd40::5 on interface eth0",
    ]);
  });
});

test("one address twice is refused, of IPv6 also with another prefix length; ADD leaves that to others", () => {
  const judge = (addresses: string[], call?: object) => {
    const ipam = { addresses: addresses.map((address) => ({ address })) };
    plugin.judge!(plugin.validate({ cniVersion: "1.0.0", name: "net", ipam }), call as never);
  };
  const twice = (address: string) => `"ipam.addresses[1].address": ${address} is there twice`;
  expect(() => judge(["10.1.0.1/24", "10.1.0.1/24"])).toThrow(twice("10.1.0.1/24"));
  expect(() => judge(["fd00::1/64", "FD00:0::1/65"])).toThrow(twice("fd00::1/65"));
  judge(["10.1.0.1/24", "10.1.0.1/25", "10.1.0.2/24", "fd00::1/64", "fd00::2/64"]);
  judge(["10.1.0.1/24", "10.1.0.1/24"], {});
});

test("DEL does nothing, whatever the configuration", () => {
  expect(plugin.keepsNothing).toBe(true);
});
