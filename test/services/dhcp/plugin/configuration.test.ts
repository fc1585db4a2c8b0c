/** What a configuration may not say: each key, with the value in the error, before anything is asked or changed. */
import { expect, test } from "bun:test";
import { openScene } from "../../../support/dhcp/scene.ts";

const long = "x".repeat(256);

const wrong: [key: string, value: unknown, named: string, args?: string][] = [
  ["daemonSocketPath", 1, "ipam.daemonSocketPath"],
  ["dataDir", ["/x"], "ipam.dataDir"],
  ["request", "12", "ipam.request"],
  ["request", ["12"], "ipam.request"],
  ["request", [{ option: 12 }], "option"],
  ["request", [{ skipDefault: "yes" }], "skipDefault"],
  ["request", [{ option: "nothing" }], `Can not parse option "nothing"`],
  ["request", [{ option: "256" }], `Can not parse option "256"`],
  ["provide", {}, "ipam.provide"],
  ["provide", [{ option: "12", value: 1 }], "value"],
  ["provide", [{ option: "-1", value: "x" }], `Can not parse option "-1"`],
  ["provide", [{ option: "", value: "x" }], `Can not parse option ""`],
  ["provide", [{ option: "12", value: long }], `value too long for option "12": "${long}"`],
  [
    "provide",
    [{ option: "12", fromArg: "A" }],
    `value too long for option "12" from CNI_ARGS "A": "${long}"`,
    `A=${long}`,
  ],
  ["provide", [{ option: "43", hex: "0" }], `"0" is not valid`],
  ["provide", [{ option: "50", value: "x" }], `option "50" cannot be provided`],
  ["priority", "high", "ipam.priority"],
  ["priority", 1.5, "ipam.priority"],
  ["routes", { dst: "10.3.0.0/16" }, "ipam.routes"],
  ["routes", [{ dst: "10.3.0.0/33" }], `ipam.routes[0].dst: "10.3.0.0/33" is not valid`],
  ["routes", [{ dst: "10.3.0.1/16" }], `ipam.routes[0].dst: "10.3.0.1/16" is not valid`],
  ["routes", [{ dst: "fd00::/64" }], `ipam.routes[0].dst: "fd00::/64" is not valid`],
  ["routes", [{ dst: "10.3.0.0/16", gw: "fd00::1" }], `ipam.routes[0].gw: "fd00::1" is not valid`],
  ["routes", [{ dst: "10.3.0.0/16", mtu: "1400" }], "ipam.routes[0].mtu"],
  ["clientId", 7, "ipam.clientId"],
  ["clientId", "somebody", `"somebody" is not valid`],
  ["clientId", "hex:0", `"hex:0" is not valid`],
  ["clientId", "text:", `"text:" is not valid`],
  ["clientId", "name", `"name" is not valid`],
  ["hostname", true, "ipam.hostname"],
  ["hostname", "a b", `"a b" is not valid`],
  ["hostname", "-a", `"-a" is not valid`],
  ["servers", "192.0.2.1", "ipam.servers"],
  ["servers", ["fd00::1"], `"fd00::1" is not valid`],
  ["denyServers", [1], "ipam.denyServers"],
  ["denyServers", ["a server"], `"a server" is not valid`],
  ["acd", 1, "ipam.acd"],
  ["acd", "thorough", `"thorough" is not valid`],
  ["ipv4", "yes", "ipam.ipv4"],
  ["ipv4", false, "ipam.ipv4: false is not valid"],
  ["ipv6", 1, "ipam.ipv6"],
  ["required", "ipv4", "ipam.required"],
  ["required", ["ipx"], `"ipx" is not valid`],
  ["required", ["ipv6"], `"ipv6" is not valid`],
  ["timeout", "1m", "ipam.timeout"],
  ["timeout", 0, "ipam.timeout: 0 is not valid"],
  ["timeout", 0.5, "ipam.timeout"],
  ["broadcast", 1, "ipam.broadcast"],
  ["ignore", "dns", "ipam.ignore"],
  ["ignore", ["servers"], `"servers" is not valid`],
  ["onExpiry", "panic", `"panic" is not valid`],
];

test("each key with a wrong type or a wrong value", async () => {
  await using scene = await openScene({ address: "192.168.77.50" });
  const { segment, server, service } = scene;
  const container = await segment.plug("c1");
  for (const [key, value, named, args] of wrong) {
    const net = service.network({ type: "dhcp" }, { [key]: value });
    const { code, json } = await net.call("ADD", container, { args });
    expect({ key, value, code, json }).toEqual({
      key,
      value,
      code: 1,
      json: expect.objectContaining({ cniVersion: "1.1.0", code: 7, msg: expect.stringContaining(named) }),
    });
    expect(json.msg).toContain("ipam.");
  }
  const without = await service.network({ type: "dhcp", ipam: undefined }).call("ADD", container, {
    conf: { ipam: undefined },
  });
  expect(without).toMatchObject({ code: 1, json: { code: 7, msg: expect.stringContaining("ipam") } });
  expect(server.received()).toEqual([]);
  expect(service.records()).toEqual([]);
});
