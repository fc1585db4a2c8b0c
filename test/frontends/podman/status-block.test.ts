/** What podman learns of an attachment, whatever plugins returned; and the warnings where it is not what was asked for. */
import { expect, test } from "bun:test";
import { parsePluginResult } from "../../../src/cni/result-versions.ts";
import { whileWarning } from "../../../src/process/warn.ts";
import { statusBlock } from "../../../src/frontends/podman/status-block.ts";

const sandbox = "/none/c1", mac = "0a:58:0a:07:00:05";
/** There is no such namespace, so nobody knows a MAC address that the result does not say. */
const request = { containerId: "c1", netnsPath: sandbox, ifName: "eth0", cniArgs: [], capabilityArgs: {} };
type RequestedAddresses = Parameters<typeof statusBlock>[2];
const nothing: RequestedAddresses = { addresses: [], mac: undefined };

function told(result: object | undefined, requested = nothing) {
  const warnings: string[] = [];
  const versioned = result && parsePluginResult(JSON.stringify({ cniVersion: "1.0.0", ...result }), "1.0.0");
  const status = whileWarning(
    (message) => warnings.push(message),
    () => statusBlock(versioned, request, requested),
  );
  return { status, warnings };
}

const block = (
  interfaces: object,
  dns_server_ips: string[] | null = null,
  dns_search_domains: string[] | null = null,
) => ({ dns_search_domains, dns_server_ips, interfaces });
const inside = (name: string, own?: string) => ({ name, sandbox, ...own && { mac: own } });
const ip = (address: string, index?: number, gateway?: string) => ({
  address,
  ...index !== undefined && { interface: index },
  ...gateway && { gateway },
});
const subnet = (ipnet: string, gateway: string | null = null) => ({ gateway, ipnet });

const statuses: [result: object | undefined, status: object][] = [
  [undefined, block({ eth0: { mac_address: "", subnets: [] } })],
  [{}, block({ eth0: { mac_address: "", subnets: [] } })],
  [
    {
      interfaces: [{ name: "host0", mac }, inside("eth0", mac.toUpperCase())],
      ips: [ip("10.7.0.5/24", 1, "10.7.0.1")],
    },
    block({ eth0: { mac_address: mac, subnets: [subnet("10.7.0.5/24", "10.7.0.1")] } }),
  ],
  [
    { interfaces: [inside("eth0"), inside("eth1", mac)], ips: [ip("10.7.0.5/24", 1), ip("fd07::5/64", 0)] },
    block({
      eth0: { mac_address: "", subnets: [subnet("fd07::5/64")] },
      eth1: { mac_address: mac, subnets: [subnet("10.7.0.5/24")] },
    }),
  ],
  // An address of no interface, or of one that is not listed, is the container's.
  [
    { interfaces: [inside("eth0", mac)], ips: [ip("10.7.0.5/24", 0), ip("fd07::5/64"), ip("fd08::5/64", 7)] },
    block({
      eth0: { mac_address: mac, subnets: ["10.7.0.5/24", "fd07::5/64", "fd08::5/64"].map((each) => subnet(each)) },
    }),
  ],
  [
    { interfaces: [inside("net1", mac)], ips: [ip("10.7.0.5/24")] },
    block({
      net1: { mac_address: mac, subnets: [] },
      eth0: { mac_address: "", subnets: [subnet("10.7.0.5/24")] },
    }),
  ],
  [{ interfaces: [inside("net1", mac)] }, block({ net1: { mac_address: mac, subnets: [] } })],
  [{ interfaces: [inside("", mac)], ips: [ip("10.7.0.5/24", 0)] }, block({ eth0: { mac_address: "", subnets: [] } })],
  [
    { interfaces: [{ name: "eth0", mac }], ips: [ip("10.7.0.5/24", 0)] },
    block({ eth0: { mac_address: "", subnets: [] } }),
  ],
  [
    { interfaces: [inside("__proto__", mac)] },
    block(JSON.parse(`{"__proto__":{"mac_address":"${mac}","subnets":[]}}`)),
  ],
  [
    {
      interfaces: [inside("eth0", mac)],
      dns: { nameservers: ["9.9.9.9"], search: ["a.example"], domain: "example" },
    },
    block({ eth0: { mac_address: mac, subnets: [] } }, ["9.9.9.9"], ["a.example"]),
  ],
  [
    { interfaces: [inside("eth0", mac)], dns: { domain: "example" } },
    block({ eth0: { mac_address: mac, subnets: [] } }, null, ["example"]),
  ],
  [
    { interfaces: [inside("eth0", mac)], dns: { nameservers: [], domain: "", search: [] } },
    block({ eth0: { mac_address: mac, subnets: [] } }),
  ],
];

test.each(statuses)("%j", (result, status) => {
  const got = told(result);
  expect(JSON.stringify(got.status)).toBe(JSON.stringify(status));
  expect(got.warnings).toEqual([]);
});

const given = { interfaces: [inside("eth0", mac)], ips: [ip("10.7.0.5/24", 0), ip("fd07::5/64", 0)] };
const warnings: [result: object, requested: Partial<RequestedAddresses>, warnings: string[]][] = [
  [given, { addresses: ["FD07:0::5", "10.7.0.5"], mac }, []],
  [given, { addresses: ["10.7.0.5", "10.7.0.6", "ten"] }, [
    "the network did not give 10.7.0.6, ten, but 10.7.0.5, fd07::5",
  ]],
  [{}, { addresses: ["10.7.0.5"] }, ["the network did not give 10.7.0.5, but nothing"]],
  [given, { mac: "02:00:00:00:00:01" }, [
    `the network did not give the MAC address 02:00:00:00:00:01, but ${mac}`,
  ]],
  [{ ...given, dns: { nameservers: ["nine"] } }, {}, [
    'the name server "nine" is left out: it is not an IP address',
  ]],
];

test.each(warnings)("%j, requested %j", (result, requested, said) => {
  expect(told(result, { ...nothing, ...requested }).warnings).toEqual(said);
});

test("a name server that is none is left out", () => {
  const { status } = told({ ...given, dns: { nameservers: ["nine", "fe80::1%eth0", "9.9.9.9"] } });
  expect(status.dns_server_ips).toEqual(["9.9.9.9"]);
});
