/** Reads the files from which netavark writes all rules again (resources/netavark/firewall-state.ts). */
import { field, isObject, parseDocument } from "../../../cni/json.ts";
import { listDirectory } from "../../../ffi/files.ts";
import { readStateFile } from "../../../process/state-file.ts";
import { protocolNumbers } from "../../../interop/iptables/rule.ts";
import type { PodmanPortMapping } from "../../../interop/podman-documents/netavark.schema.ts";
import { publishedPort } from "../../../plugins/netavark/netavark-bridge/specifications.ts";
import { isolations } from "../../../plugins/netavark/netavark-bridge/firewall-state.ts";
import type { PublishedPortsSpec } from "../../../resources/netavark/published-ports.ts";
import { firewallDirectory, firewallFiles } from "../../../resources/netavark/shared/config-directory.ts";
import type { NetworkRulesSpec } from "../../../resources/netavark/shared/nft-rules.ts";

type Document = Record<string, unknown>;

export interface State {
  networks: NetworkRulesSpec[];
  containers: PublishedPortsSpec[];
}

/** Calls `refuse` for a file that cannot be read, and leaves it out. */
export function readState(configDirectory: string, refuse: (path: string, reason: unknown) => void): State {
  const files = filesIn(configDirectory);
  const each = <T>(folder: string, read: (document: Document) => T): T[] =>
    listDirectory(folder).flatMap((name) => {
      const path = `${folder}/${name}`;
      try {
        const document = parseDocument(readStateFile(path) ?? "", path);
        if (!isObject(document)) throw new Error("it is not a JSON object");
        return [read(document)];
      } catch (error) {
        refuse(path, error);
        return [];
      }
    });
  const containers = each(files.containers, (document) => ({ document, specs: containerOf(document) }));
  const documents = containers.map(({ document }) => document);
  return {
    networks: each(files.networks, (document) => networkOf(document, documents)),
    containers: containers.flatMap(({ specs }) => specs),
  };
}

/** The driver that netavark had; undefined when there is no such file. */
export function readDriver(configDirectory: string): string | undefined {
  return readStateFile(filesIn(configDirectory).driver);
}

function filesIn(configDirectory: string) {
  return firewallFiles(firewallDirectory(configDirectory));
}

/** The addresses of the network's DNS servers are in the files of its containers only. */
function networkOf(document: Document, containers: readonly Document[]): NetworkRulesSpec {
  const networkId = text(document, "network_id"), subnets = texts(document, "subnets");
  const said = text(document, "isolation"), known = Object.keys(isolations) as (keyof typeof isolations)[];
  const isolation = known.find((each) => isolations[each] === said);
  if (isolation === undefined) throw new Error(`"isolation" must be ${Object.values(isolations).join(", ")}`);
  const container = containers.find((each) => field(each, "network_id") === networkId);
  return {
    network: container === undefined ? "" : text(container, "network_name"),
    networkId,
    bridge: text(document, "bridge_name"),
    subnets: subnets.map((subnet) => ({ subnet })),
    isolation,
    isInternal: field(document, "internal") === true,
    dnsPort: Number(field(document, "dns_port")),
    dnsServers: container === undefined ? [] : texts(container, "dns_server_ips"),
    ...outbound(document),
  };
}

function outbound(document: Document): Pick<NetworkRulesSpec, "outbound4" | "outbound6"> {
  const [four, six] = ["outbound_addr4", "outbound_addr6"].map((key) => field(document, key));
  return { ...typeof four === "string" && { outbound4: four }, ...typeof six === "string" && { outbound6: six } };
}

/** Returns nothing for a container without ports. */
function containerOf(document: Document): PublishedPortsSpec[] {
  const mappings = field(document, "port_mappings"), targets: PublishedPortsSpec["targets"] = [];
  if (!Array.isArray(mappings) || mappings.length === 0 || field(document, "internal") === true) return [];
  for (const family of ["v4", "v6"]) {
    const address = field(document, `container_ip_${family}`), subnet = field(document, `subnet_${family}`);
    if (typeof address === "string" && typeof subnet === "string") targets.push({ address, subnet });
  }
  return [{
    network: text(document, "network_name"),
    containerId: text(document, "container_id"),
    ifName: "",
    networkId: text(document, "network_id"),
    targets,
    ports: (mappings.filter(isObject) as PodmanPortMapping[]).filter(({ protocol }) =>
      Object.hasOwn(protocolNumbers, protocol)
    )
      .map(publishedPort),
  }];
}

function text(document: Document, key: string): string {
  const value = field(document, key);
  if (typeof value !== "string") throw new Error(`"${key}" must be a string, got ${JSON.stringify(value)}`);
  return value;
}

function texts(document: Document, key: string): string[] {
  const value = field(document, key) ?? [];
  if (!Array.isArray(value)) throw new Error(`"${key}" must be a list, got ${JSON.stringify(value)}`);
  return value.map(String);
}
