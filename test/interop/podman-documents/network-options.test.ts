/** The options of networks: values are read from text, and missing options have defaults. */
import { expect, test } from "bun:test";
import { readInteger } from "../../../src/interop/podman-documents/integer.ts";
import {
  readBridgeOptions,
  readVlanOptions,
  refuseUnknownBridgeOptions,
  refuseUnknownVlanOptions,
} from "../../../src/interop/podman-documents/network-options.ts";

test("options of bridges", () => {
  const none = { mode: "managed", isolate: "strict", noDefaultRoute: false } as const;
  expect(readBridgeOptions(undefined)).toEqual(none);
  expect(readBridgeOptions({ mode: "", unknown: "x", mtu: "+1500", vlan: "0" })).toEqual({
    ...none,
    mtu: 1500,
    vlan: 0,
  });
  expect(
    readBridgeOptions({
      isolate: "false",
      metric: "4294967295",
      mode: "unmanaged",
      no_default_route: "true",
      outbound_addr4: "192.0.2.1",
      outbound_addr6: "2001:db8::1",
      vlan: "4094",
      vrf: "blue",
    }),
  ).toEqual({
    mode: "unmanaged",
    isolate: "false",
    noDefaultRoute: true,
    metric: 4294967295,
    outbound4: "192.0.2.1",
    outbound6: "2001:db8::1",
    vlan: 4094,
    vrf: "blue",
  });
  expect(() => readBridgeOptions({ outbound_addr6: "192.0.2.1" })).toThrow("invalid IPv6 address syntax");
});

test("options of macvlan and ipvlan", () => {
  expect(readVlanOptions("macvlan", undefined)).toEqual({ mode: "bridge", noDefaultRoute: false });
  expect(readVlanOptions("ipvlan", { mode: "l3", mtu: "9000" })).toEqual({
    mode: "l3",
    noDefaultRoute: false,
    mtu: 9000,
  });
  expect(readVlanOptions("macvlan", { bclim: "-2147483648" }).broadcastLimit).toBe(-2147483648);
  expect(() => readVlanOptions("macvlan", { bclim: "-2147483649" })).toThrow(
    "number too small to fit in target type",
  );
});

test("the first and the last value of each number, and the next ones", () => {
  const number = "unable to parse";
  const bounds = [
    ["mtu", "0", "4294967295", `${number} "mtu": invalid digit`, `${number} "mtu": number too large`],
    ["metric", "0", "4294967295", `${number} "metric": invalid digit`, `${number} "metric": number too large`],
    ["vlan", "0", "4094", `${number} "vlan": invalid digit`, "vlan must be between 0 and 4094"],
  ] as const;
  const readers = [readBridgeOptions, (options: Record<string, string>) => readVlanOptions("macvlan", options)];
  for (const read of readers) {
    for (const [name, first, last, below, above] of bounds) {
      if (name === "vlan" && read !== readBridgeOptions) continue;
      for (const value of [first, last]) expect(read({ [name]: value })).toMatchObject({ [name]: Number(value) });
      expect(() => read({ [name]: "-1" })).toThrow(below);
      expect(() => read({ [name]: String(Number(last) + 1) })).toThrow(above);
    }
  }
  expect(() => readBridgeOptions({ vlan: "65536" })).toThrow('unable to parse "vlan": number too large');
  expect(() => readBridgeOptions({ vlan: "65535" })).toThrow("vlan must be between 0 and 4094");
  const limit = (bclim: string) => readVlanOptions("macvlan", { bclim }).broadcastLimit;
  expect(["-10", "0", "2147483647"].map(limit)).toEqual([-10, 0, 2147483647]);
  expect(() => limit("2147483648")).toThrow("number too large to fit in target type");
});

test("options that nobody knows", () => {
  const bridge = [
    "isolate",
    "metric",
    "mode",
    "mtu",
    "no_default_route",
    "outbound_addr4",
    "outbound_addr6",
    "vlan",
    "vrf",
  ];
  const vlan = ["metric", "mode", "mtu", "no_default_route"];
  const all = (names: string[]) => Object.fromEntries(names.map((name) => [name, "x"]));
  refuseUnknownBridgeOptions(undefined);
  refuseUnknownBridgeOptions(all(bridge));
  refuseUnknownVlanOptions("ipvlan", undefined);
  refuseUnknownVlanOptions("ipvlan", all(vlan));
  refuseUnknownVlanOptions("macvlan", all([...vlan, "bclim"]));
  expect(() => refuseUnknownBridgeOptions(all(["mtu", "bclim"]))).toThrow("unsupported bridge network option: bclim");
  expect(() => refuseUnknownVlanOptions("macvlan", all(["mtu", "vlan"]))).toThrow(
    "unsupported vlan network option: vlan",
  );
  expect(() => refuseUnknownVlanOptions("ipvlan", all(["bclim"]))).toThrow("unsupported ipvlan network option bclim");
});

test("integers as Rust reads them", () => {
  const read = (text: string) => readInteger(text, 0, 65535);
  expect(["0", "65535", "+7", "007"].map(read)).toEqual([0, 65535, 7, 7]);
  expect(read("")).toBe("cannot parse integer from empty string");
  expect(["-1", " 1", "1.0", "1e3", "0x10", "٣", "+", "--1"].map(read)).toEqual(
    new Array(8).fill("invalid digit found in string"),
  );
  expect(["65536", "9".repeat(400)].map(read)).toEqual(new Array(2).fill("number too large to fit in target type"));
});
