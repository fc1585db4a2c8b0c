/** The files from which netavark writes rules again, read as the rules that they stand for. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDriver, readState } from "../../../../src/frontends/netavark/firewall/state-files.ts";

const top = mkdtempSync(join(tmpdir(), "patchbay-state-"));
afterAll(() => rmSync(top, { recursive: true }));
let count = 0;

/** What is read of these files, and what is left out. */
function read(files: Record<string, unknown>) {
  const configDirectory = join(top, `${count++}`), directory = join(configDirectory, "firewall");
  const refused: string[] = [];
  for (const folder of ["networks", "ports"]) mkdirSync(join(directory, folder), { recursive: true });
  for (const [name, document] of Object.entries(files)) {
    writeFileSync(join(directory, name), typeof document === "string" ? document : JSON.stringify(document));
  }
  const state = readState(configDirectory, (path, reason) => {
    refused.push(`${path.slice(directory.length + 1)}: ${(reason as Error).message}`);
  });
  return { ...state, refused, driver: readDriver(configDirectory) };
}

const network = {
  subnets: ["10.8.0.0/24", "fd08::/64"],
  bridge_name: "podman1",
  network_id: "5ca1ab1e",
  isolation: "Strict",
  dns_port: 53,
  internal: false,
};
const web = { container_port: 80, host_port: 8080, host_ip: "", protocol: "tcp", range: 1 };
const container = {
  container_id: "c1",
  network_id: "5ca1ab1e",
  network_name: "orchard",
  port_mappings: [web],
  container_ip_v4: "10.8.0.9",
  subnet_v4: "10.8.0.0/24",
  container_ip_v6: "fd08::9",
  subnet_v6: "fd08::/64",
  dns_server_ips: ["10.8.0.1"],
  internal: false,
};
const rules = {
  network: "",
  networkId: "5ca1ab1e",
  bridge: "podman1",
  subnets: [{ subnet: "10.8.0.0/24" }, { subnet: "fd08::/64" }],
  isolation: "strict" as const,
  isInternal: false,
  dnsPort: 53,
  dnsServers: [] as string[],
};
const ports = {
  network: "orchard",
  containerId: "c1",
  ifName: "",
  networkId: "5ca1ab1e",
  targets: [{ address: "10.8.0.9", subnet: "10.8.0.0/24" }, { address: "fd08::9", subnet: "fd08::/64" }],
  ports: [{ protocol: "tcp" as const, hostPort: 8080, containerPort: 80, range: 1, hostIp: undefined }],
};

test("a network, with the name and the servers that its containers say", () => {
  expect(read({})).toEqual({ networks: [], containers: [], refused: [], driver: undefined });
  expect(read({ "networks/n": network, "firewall-driver": "firewalld" })).toEqual({
    networks: [rules],
    containers: [],
    refused: [],
    driver: "firewalld",
  });
  const others = { ...container, network_id: "0f", network_name: "garden", dns_server_ips: ["10.9.0.1"] };
  expect(read({ "networks/n": network, "ports/a": others, "ports/b": container }).networks).toEqual([
    { ...rules, network: "orchard", dnsServers: ["10.8.0.1"] },
  ]);
  expect(read({ "networks/n": { ...network, isolation: "Normal", internal: true, dns_port: 1553 } }).networks)
    .toEqual([
      { ...rules, isolation: "normal", isInternal: true, dnsPort: 1553 },
    ]);
  const outbound = { isolation: "Never", outbound_addr4: "192.0.2.4", outbound_addr6: null };
  expect(read({ "networks/n": { ...network, ...outbound } }).networks).toEqual([
    { ...rules, isolation: "never", outbound4: "192.0.2.4" },
  ]);
  expect(read({ "networks/n": { ...network, outbound_addr6: "2001:db8::4" } }).networks).toEqual([
    { ...rules, outbound6: "2001:db8::4" },
  ]);
});

test("a container's ports, of the addresses that it has", () => {
  const of = (more: object) => read({ "ports/c": { ...container, ...more } });
  expect(of({}).containers).toEqual([ports]);
  expect(of({ container_ip_v4: null }).containers).toEqual([{ ...ports, targets: ports.targets.slice(1) }]);
  expect(of({ subnet_v6: null }).containers).toEqual([{ ...ports, targets: ports.targets.slice(0, 1) }]);
  const unknown = [{ ...web, protocol: "dccp" }, 7, web];
  expect(of({ port_mappings: unknown }).containers).toEqual([ports]);
  for (const more of [{ port_mappings: null }, { port_mappings: [] }, { internal: true }]) {
    expect(of(more)).toMatchObject({ containers: [], refused: [] });
  }
});

test("a file that cannot be read is left out, and the others are read", () => {
  const { networks, containers, refused } = read({
    "networks/a": { ...network, isolation: "Some" },
    "networks/b": { ...network, bridge_name: null },
    "networks/c": { ...network, subnets: "10.8.0.0/24" },
    "networks/d": [],
    "networks/e": "{",
    "networks/f": network,
    "ports/a": { ...container, container_id: 7 },
    "ports/b": container,
  });
  expect(networks).toHaveLength(1);
  expect(containers).toEqual([ports]);
  expect(refused.sort()).toEqual([
    'networks/a: "isolation" must be Strict, Normal, Never',
    'networks/b: "bridge_name" must be a string, got null',
    'networks/c: "subnets" must be a list, got "10.8.0.0/24"',
    "networks/d: it is not a JSON object",
    expect.stringContaining("networks/e: "),
    'ports/a: "container_id" must be a string, got 7',
  ]);
});
