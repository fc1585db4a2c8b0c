/** Reading stdin of setup and teardown: both forms of `networks`, and refusals that name the key. */
import { expect, test } from "bun:test";
import { readContainerCall } from "../../../src/interop/podman-documents/container-call.ts";
import { creation } from "../../support/netavark/creation.ts";

const { network } = creation();
const call = {
  container_id: "c0ffee",
  container_name: "cup",
  networks: [{ name: "orchard", interface_name: "eth0" }] as unknown,
  network_info: { orchard: network },
};

const read = (document: unknown) =>
  readContainerCall(new TextEncoder().encode(typeof document === "string" ? document : JSON.stringify(document)));

const interfaces = (document: unknown) =>
  read(document).attachments.map(({ name, interface_name }) => `${name} ${interface_name}`);

test("networks as a list and as a map, in the order of the text", () => {
  expect(interfaces(call)).toEqual(["orchard eth0"]);
  expect(interfaces({ ...call, networks: [] })).toEqual([]);
  const list = ["9", "z", "10", "a"].map((name, index) => ({ name, interface_name: `eth${index}` }));
  expect(interfaces({ ...call, networks: list })).toEqual(["9 eth0", "z eth1", "10 eth2", "a eth3"]);
  // JavaScript's own objects would begin with 9 and 10.
  const map = list.map(({ name, interface_name }) => `"${name}": {"interface_name": "${interface_name}"}`).join();
  const text = JSON.stringify({ ...call, networks: "HERE" }).replace('"HERE"', `{${map}}`);
  expect(interfaces(text)).toEqual(["9 eth0", "z eth1", "10 eth2", "a eth3"]);
  // One digit is enough.
  for (const name of ["0", "1", "9"]) {
    expect(interfaces(text.replace('"10"', '"b"').replace('"9"', `"${name}"`).replace('"z"', '"c"'))[0]).toBe(
      `${name} eth0`,
    );
    expect(interfaces(text.replace('"10"', '"b"').replace('"9"', '"c"').replace('"z"', `"${name}"`))[1]).toBe(
      `${name} eth1`,
    );
  }
  // The map's key is the name, whatever stands within.
  expect(interfaces({ ...call, networks: { orchard: { interface_name: "eth0", name: "other" } } })).toEqual([
    "orchard eth0",
  ]);
  const odd = JSON.stringify(call).replace(
    /"networks":\[.*?\]/,
    '"networks":{"__proto__":{"interface_name":"eth0"}}',
  );
  expect(interfaces(odd)).toEqual(["__proto__ eth0"]);
});

test("addresses get their usual form", () => {
  const attachment = {
    name: "orchard",
    interface_name: "eth0",
    static_ips: ["FD00::05"],
    static_mac: "AA-b-CC-DD-EE-1",
  };
  const found = read({ ...call, networks: [attachment], dns_servers: ["2001:DB8::0"], port_mappings: null });
  expect(found.attachments[0]).toMatchObject({ static_ips: ["fd00::5"], static_mac: "aa:0b:cc:dd:ee:01" });
  expect(found.dns_servers).toEqual(["2001:db8::"]);
  expect(found.port_mappings).toBeUndefined();
  const subnets = [{ subnet: "FD00:0::/64", gateway: "fd00:0:0::1" }];
  expect(read({ ...call, network_info: { orchard: { ...network, subnets } } }).network_info["orchard"]!.subnets)
    .toEqual([
      { subnet: "fd00::/64", gateway: "fd00::1" },
    ]);
});

const mapping = { container_port: 80, host_port: 8080, range: 1, host_ip: "", protocol: "tcp" };
const attachment = (more: object) => ({ ...call, networks: [{ name: "orchard", interface_name: "eth0", ...more }] });

const refused: [document: unknown, text: string][] = [
  [{ ...call, networks: undefined }, '"networks" is missing'],
  [{ ...call, networks: null }, '"networks" is missing'],
  [{ ...call, networks: 7 }, '"networks" must be an object, got 7'],
  [{ ...call, networks: [{ interface_name: "eth0" }] }, 'networks[0]: "name" is missing'],
  [{ ...call, networks: { orchard: {} } }, 'networks.orchard: "interface_name" is missing'],
  [{ ...call, networks: { orchard: null } }, '"networks.orchard" must be an object, got null'],
  [{ ...call, networks: ["orchard"] }, 'must be an object, got "orchard"'],
  [{ ...call, container_id: undefined }, '"container_id" is missing'],
  [{ ...call, container_name: 7 }, '"container_name" must be a string, got 7'],
  [{ ...call, network_info: undefined }, '"network_info" is missing'],
  [
    { ...call, network_info: { orchard: { ...network, internal: undefined } } },
    '"network_info.orchard.internal" is missing',
  ],
  [
    { ...call, network_info: { orchard: { ...network, subnets: [{ subnet: "10.0.0.1" }] } } },
    '"network_info.orchard.subnets[0].subnet": invalid IP address syntax: "10.0.0.1"',
  ],
  [{ ...call, dns_servers: ["fe80::1%eth0"] }, '"dns_servers[0]": invalid IP address syntax: "fe80::1%eth0"'],
  [
    attachment({ static_ips: ["10.0.0.1/24"] }),
    '"networks[0].static_ips[0]": invalid IP address syntax: "10.0.0.1/24"',
  ],
  [attachment({ static_mac: "aa:bb:cc:dd:ee" }), "invalid mac length for address: aa:bb:cc:dd:ee"],
  [attachment({ static_mac: "aa:bb:cc:dd:ee:ff:00:11" }), "invalid mac length for address: aa:bb:cc:dd:ee:ff:00:11"],
  [attachment({ static_mac: "aa:bb:cc:dd:ee:gg" }), "unable to parse mac address aa:bb:cc:dd:ee:gg: invalid digit"],
  [attachment({ static_mac: "aa:bb:cc:dd:ee:0ff" }), "unable to parse mac address aa:bb:cc:dd:ee:0ff: invalid digit"],
  [attachment({ static_mac: "" }), "unable to parse mac address : cannot parse integer"],
  [attachment({ static_mac: "aa::bb" }), "unable to parse mac address aa::bb: cannot parse integer"],
  [{ ...call, port_mappings: [{ ...mapping, host_ip: undefined }] }, '"port_mappings[0].host_ip" is missing'],
  [
    { ...call, port_mappings: [mapping, { ...mapping, host_port: 65536 }] },
    '"port_mappings[1].host_port" must be between 0 and 65535, got 65536',
  ],
  [
    { ...call, port_mappings: [{ ...mapping, range: -1 }] },
    '"port_mappings[0].range" must be between 0 and 65535, got -1',
  ],
  [
    { ...call, port_mappings: [{ ...mapping, host_port: 65535, range: 2 }] },
    '"port_mappings[0].range": 2 ports would end at 65536, after 65535',
  ],
  ["", "unexpected end of JSON input"],
  ["null", "the document must be an object, got null"],
  [`{"a":"${"x".repeat(17 * 1024 * 1024)}"}`, "the document is larger than 16777216 bytes"],
];

test("a refusal names the key", () => {
  for (const [document, text] of refused) expect(() => read(document)).toThrow(text);
});

test("a range of ports may end at the last", () => {
  const mappings = [{ ...mapping, host_port: 65535, range: 0 }, { ...mapping, host_port: 65534, range: 2 }];
  expect(read({ ...call, port_mappings: mappings }).port_mappings).toEqual(mappings);
});
