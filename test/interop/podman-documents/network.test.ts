/** Checks of networks, and a network's text as netavark writes it. */
import { expect, test } from "bun:test";
import type { PodmanNetwork } from "../../../src/interop/podman-documents/netavark.schema.ts";
import {
  checkedInteger,
  checkedNetwork,
  inOrder,
  refuseBadRoutes,
} from "../../../src/interop/podman-documents/network.ts";

const U32_MAX = 4294967295;
const network: PodmanNetwork = {
  name: "orchard",
  id: "5ca1ab1e",
  driver: "bridge",
  dns_enabled: true,
  internal: false,
  ipv6_enabled: false,
};

test("keys in netavark's order, and none for what is not set", () => {
  const least =
    '{"dns_enabled":true,"driver":"bridge","id":"5ca1ab1e","internal":false,"ipv6_enabled":false,"name":"orchard"}';
  expect(JSON.stringify(inOrder(network))).toBe(least);
  expect(JSON.stringify(inOrder({ ...network, subnets: [], routes: [], labels: {}, network_dns_servers: [] }))).toBe(
    least.replace("}", ',"subnets":[],"routes":[],"network_dns_servers":[],"labels":{}}'),
  );
  const whole: PodmanNetwork = {
    labels: { tree: "pear" },
    network_dns_servers: ["9.9.9.9"],
    routes: [
      { route_type: "unicast", metric: 0, destination: "10.9.0.0/16", gateway: "10.8.0.2" },
      { destination: "10.10.0.0/16", route_type: "blackhole" },
    ],
    subnets: [
      { lease_range: { start_ip: "10.8.0.2", end_ip: "10.8.0.9" }, subnet: "10.8.0.0/24", gateway: "10.8.0.1" },
      { subnet: "fd08::/64", lease_range: { end_ip: "fd08::9" } },
      { subnet: "fd09::/64", lease_range: { start_ip: "fd09::2" } },
    ],
    ipam_options: { driver: "host-local" },
    options: { mtu: "1400" },
    network_interface: "podman1",
    ...network,
    created: "2024-01-01T00:00:00Z",
  };
  expect(JSON.stringify(inOrder(whole))).toBe(
    `{"created":"2024-01-01T00:00:00Z",${least.slice(1, -1)},` +
      '"network_interface":"podman1","options":{"mtu":"1400"},"ipam_options":{"driver":"host-local"},"subnets":[' +
      '{"gateway":"10.8.0.1","lease_range":{"end_ip":"10.8.0.9","start_ip":"10.8.0.2"},"subnet":"10.8.0.0/24"},' +
      '{"lease_range":{"end_ip":"fd08::9"},"subnet":"fd08::/64"},' +
      '{"lease_range":{"start_ip":"fd09::2"},"subnet":"fd09::/64"}],"routes":[' +
      '{"gateway":"10.8.0.2","destination":"10.9.0.0/16","metric":0,"route_type":"unicast"},' +
      '{"destination":"10.10.0.0/16","route_type":"blackhole"}],' +
      '"network_dns_servers":["9.9.9.9"],"labels":{"tree":"pear"}}',
  );
});

test("every address gets its usual form, and a refusal says which of several is wrong", () => {
  const route = { destination: "FD09::/16", gateway: "FD08:0::2", metric: U32_MAX },
    subnet = { subnet: "10.8.0.9/24" };
  const asked = { ...network, subnets: [subnet], routes: [route, { destination: "10.9.0.0/16" }] };
  expect(checkedNetwork(asked, "n")).toEqual({
    ...asked,
    routes: [{ destination: "fd09::/16", gateway: "fd08::2", metric: U32_MAX }, { destination: "10.9.0.0/16" }],
  });
  expect(checkedNetwork(network, "n")).toEqual(network);
  const refusing: [Partial<PodmanNetwork>, string][] = [
    [{ subnets: [subnet, { ...subnet, gateway: "x" }] }, '"n.subnets[1].gateway": invalid IP address syntax: "x"'],
    [{ routes: [route, { ...route, gateway: "x" }] }, '"n.routes[1].gateway": invalid IP address syntax: "x"'],
    [{ routes: [route, { ...route, metric: U32_MAX + 1 }] }, `"n.routes[1].metric" must be between 0 and ${U32_MAX}`],
    [{ network_dns_servers: ["9.9.9.9", "x"] }, '"n.network_dns_servers[1]": invalid IP address syntax: "x"'],
  ];
  for (const [more, text] of refusing) expect(() => checkedNetwork({ ...network, ...more }, "n")).toThrow(text);
});

test("an integer is one of the first and the last, and of all between", () => {
  for (const value of [0, 1, 7]) expect(checkedInteger(value, 7, "n")).toBe(value);
  for (const value of [-1, 8]) {
    expect(() => checkedInteger(value, 7, "n")).toThrow(`"n" must be between 0 and 7, got ${value}`);
  }
});

const to = (more: object) => [{ destination: "10.9.0.0/16", ...more }];
const ending = ["blackhole", "unreachable", "prohibit"];

test("routes have a gateway of their family, or drop packets", () => {
  for (const type of [undefined, "", "unicast"]) refuseBadRoutes(to({ gateway: "10.8.0.2", route_type: type }));
  for (const type of ending) refuseBadRoutes(to({ route_type: type }));
  const refusing: [more: object, text: string][] = [
    [{}, "route 10.9.0.0/16 requires a gateway for type unicast"],
    [{ route_type: "" }, "route 10.9.0.0/16 requires a gateway for type unicast"],
    [{ gateway: "10.8.0.2", route_type: "local" }, 'invalid route type "local"'],
    [{ gateway: "fd08::2" }, "route with ipv4 destination and ipv6 gateway (10.9.0.0/16 via fd08::2)"],
    [{ destination: "10.9.0.1/16", gateway: "10.8.0.2" }, "route destination invalid: 10.9.0.1/16"],
    ...ending.map((type): [object, string] => [
      { gateway: "10.8.0.2", route_type: type },
      `route 10.9.0.0/16 must not have a gateway for type ${type}`,
    ]),
  ];
  for (const [more, text] of refusing) {
    // It need not be the first.
    expect(() => refuseBadRoutes([...to({ route_type: "prohibit" }), ...to(more)])).toThrow(new Error(text));
  }
});
