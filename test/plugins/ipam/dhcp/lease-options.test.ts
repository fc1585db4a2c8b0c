/** What a configuration and CNI_ARGS say about a lease, and what they cannot say. */
import { expect, test } from "bun:test";
import { type Caller, leaseOptionsOf } from "../../../../src/plugins/ipam/dhcp/lease-options.ts";
import { validateDhcpConf } from "../../../../src/plugins/ipam/dhcp/dhcp.validate.gen.ts";

const caller: Caller = {
  owner: { network: "net", containerId: "c1", ifName: "eth0" },
  cniArgs: "K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;odd;=x",
  mac: "02:00:00:00:00:03",
};
const options = (ipam: Record<string, unknown>, conf: Record<string, unknown> = {}, call = caller) =>
  leaseOptionsOf(
    validateDhcpConf({ cniVersion: "1.1.0", name: "net", type: "macvlan", ...conf, ipam: { type: "dhcp", ...ipam } }),
    call,
  );

test("without options, what Go's plugin asks for", () => {
  expect(options({})).toMatchObject({
    clientId: Buffer.from("\0c1/net/eth0").toHex(),
    provided: [],
    broadcast: false,
    probe: "fast",
    servers: [],
    denied: [],
    onExpiry: "remove",
    ignored: [],
    required: ["ipv4"],
  });
});

test.each([
  [{ clientId: "mac" }, "01020000000003"],
  [{ clientId: "none" }, undefined],
  [{ clientId: "text:ab" }, "6162"],
  [{ clientId: "text:a" }, "61"],
  [{ clientId: "hex:00fF" }, "00ff"],
  [{ clientId: `hex:${"0a".repeat(255)}` }, "0a".repeat(255)],
  [{ clientId: "name" }, Buffer.from("\0shop/web-0/eth0").toHex()],
])("%j makes the client ID %s", (ipam, clientId) => expect(options(ipam).clientId).toBe(clientId as string));

test("a link without a MAC address has no client ID of it", () => {
  expect(options({ clientId: "mac" }, {}, { ...caller, mac: undefined }).clientId).toBeUndefined();
});

test("duid: the client ID says what IPv6 says", () => {
  const { clientId, v6 } = options({ clientId: "duid", ipv6: true });
  expect(clientId).toBe(`ff${v6!.iaid}${v6!.duid}`);
});

test.each([
  [{ broadcast: true }, {}, { broadcast: true }],
  [{}, { type: "ipvlan" }, { broadcast: true }],
  [{ servers: ["10.0.0.1"], denyServers: ["10.0.0.2"] }, {}, { servers: ["10.0.0.1"], denied: ["10.0.0.2"] }],
  [{ ipv6: true }, {}, { required: ["ipv4", "ipv6"], v4: true }],
  [{ ipv6: true, required: ["ipv6"] }, {}, { required: ["ipv6"] }],
  [{ ipv4: false, ipv6: true }, {}, { required: ["ipv6"], v4: false }],
  [{ timeout: 1 }, {}, { timeout: 1 }],
  [{}, {}, { routes: undefined }],
  [{ routes: [{ dst: "10.3.0.0/16" }, { dst: "10.0.0.0/8", gw: "10.0.0.1", mtu: 1400 }] }, {}, {
    routes: [{ dst: "10.3.0.0/16" }, { dst: "10.0.0.0/8", gw: "10.0.0.1", mtu: 1400 }],
  }],
  // As the kernel writes them.
  [{ ipv6: true, routes: [{ dst: "FD00:0::/64", gw: "fe80:0::1" }, { dst: "0.0.0.0/0", gw: "" }] }, {}, {
    routes: [{ dst: "fd00::/64", gw: "fe80::1" }, { dst: "0.0.0.0/0" }],
  }],
  [{}, { master: "m0" }, { hostLink: "m0" }],
  [{}, { type: "bridge" }, { hostLink: "cni0" }],
  [{}, { type: "bridge", bridge: "br5" }, { hostLink: "br5" }],
  [{}, {}, { hostLink: undefined }],
])("%j of %j means %j", (ipam, conf, expected) => {
  const found = options(ipam, conf);
  expect(Object.fromEntries(Object.keys(expected).map((key) => [key, found[key as keyof typeof found]]))).toEqual(
    expected,
  );
});

test("a host name goes to the server, up to 63 letters between two dots", () => {
  for (const name of [`${"a".repeat(63)}.b-1`, "a9b9", "9", `${"ab.".repeat(84)}abc`]) {
    expect(options({ hostname: name }).provided).toEqual([[12, Buffer.from(name).toHex()]]);
  }
});

test.each<[ipam: Record<string, unknown>, key: string]>([
  [{ hostname: `${"a".repeat(64)}.b` }, "ipam.hostname"],
  [{ hostname: "-a" }, "ipam.hostname"],
  [{ hostname: "a-" }, "ipam.hostname"],
  [{ hostname: `${"a.".repeat(127)}aa` }, "ipam.hostname"],
  [{ clientId: "hex:0" }, "ipam.clientId"],
  [{ clientId: "text:" }, "ipam.clientId"],
  [{ clientId: `hex:${"0a".repeat(256)}` }, "ipam.clientId"],
  [{ servers: ["fd00::1"] }, "ipam.servers"],
  [{ denyServers: ["x"] }, "ipam.denyServers"],
  [{ timeout: 0 }, "ipam.timeout"],
  [{ acd: "x" }, "ipam.acd"],
  [{ onExpiry: "x" }, "ipam.onExpiry"],
  [{ ignore: ["x"] }, "ipam.ignore"],
  ...["10.3.0.0", "10.3.0.0/33", "10.3.0.1/16", "fd00::1/64", "", "default"].map((
    dst,
  ): [Record<string, unknown>, string] => [
    { ipv6: true, routes: [{ dst: "10.4.0.0/16" }, { dst }] },
    `ipam.routes[1].dst: "${dst}"`,
  ]),
  [{ routes: [{}] }, 'ipam.routes[0].dst: ""'],
  [{ routes: [{ dst: "10.3.0.0/16", scope: 256 }] }, "ipam.routes[0].scope: 256"],
  [{ routes: [{ dst: "10.3.0.0/16", priority: -1 }] }, "ipam.routes[0].priority: -1"],
  [{ routes: [{ dst: "10.3.0.0/16", table: 2 ** 32 }] }, "ipam.routes[0].table: 4294967296"],
  // Nobody would make them with the address, and take them away with it.
  [{ routes: [{ dst: "fd00::/64" }] }, 'ipam.routes[0].dst: "fd00::/64"'],
  [{ ipv4: false, ipv6: true, routes: [{ dst: "10.3.0.0/16" }] }, 'ipam.routes[0].dst: "10.3.0.0/16"'],
  [{ routes: [{ dst: "10.3.0.0/16", gw: "10.1.0.300" }] }, 'ipam.routes[0].gw: "10.1.0.300"'],
  [{ routes: [{ dst: "10.3.0.0/16", gw: "fd00::1" }] }, 'ipam.routes[0].gw: "fd00::1"'],
  [{ ipv6: true, routes: [{ dst: "fd00::/64", gw: "10.1.0.1" }] }, 'ipam.routes[0].gw: "10.1.0.1"'],
  [{ ipv4: false }, "ipam.ipv4"],
  [{ required: ["ipv6"] }, "ipam.required"],
  [{ required: ["x"] }, "ipam.required"],
])("%j is refused by the name of its key", (ipam, key) => {
  expect(() => options(ipam)).toThrow(expect.objectContaining({ code: 7, message: expect.stringContaining(key) }));
});
