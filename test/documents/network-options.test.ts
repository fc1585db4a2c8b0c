/** The options of networks: values are read from text, and missing options have defaults. */
import { expect, test } from "bun:test";
import { readInteger } from "../../src/documents/integer.ts";
import { readBridgeOptions, readVlanOptions } from "../../src/documents/network-options.ts";

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

test("integers as Rust reads them", () => {
  const read = (text: string) => readInteger(text, 0, 65535);
  expect(["0", "65535", "+7", "007"].map(read)).toEqual([0, 65535, 7, 7]);
  expect(read("")).toBe("cannot parse integer from empty string");
  expect(["-1", " 1", "1.0", "1e3", "0x10", "٣", "+", "--1"].map(read)).toEqual(
    new Array(8).fill("invalid digit found in string"),
  );
  expect(["65536", "9".repeat(400)].map(read)).toEqual(new Array(2).fill("number too large to fit in target type"));
});
