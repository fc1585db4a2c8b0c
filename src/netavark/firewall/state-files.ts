/** The files from which netavark writes all rules again, as netavark or we wrote them. */
import { field, isObject, parseDocument } from "../../cni/json.ts";
import { listDirectory } from "../../ffi/files.ts";
import { readStateFile } from "../../ffi/state-file.ts";
import { protocolNumbers } from "../../iptables/rule.ts";
import type { PublishedPort, PublishedPortsSpec } from "../../resources/netavark/published-ports.ts";
import type { NetworkRulesSpec } from "../../resources/netavark/shared/network-rules-spec.ts";

type Document = Record<string, unknown>;

const isolations: Record<string, NetworkRulesSpec["isolation"]> = {
  Strict: "strict",
  Normal: "normal",
  Never: "never",
};

/** What is written in `directory`; a file that cannot be read is told to `refuse`, and left out. */
export function readState(
  directory: string,
  refuse: (path: string, reason: unknown) => void,
): { driver: string | undefined; networks: NetworkRulesSpec[]; containers: PublishedPortsSpec[] } {
  const each = <T>(folder: string, read: (document: Document) => T): T[] =>
    listDirectory(`${directory}/${folder}`).flatMap((name) => {
      const path = `${directory}/${folder}/${name}`;
      try {
        const document = parseDocument(readStateFile(path) ?? "", path);
        if (!isObject(document)) throw new Error("it is no JSON object");
        return [read(document)];
      } catch (error) {
        refuse(path, error);
        return [];
      }
    });
  const containers = each("ports", (document) => document);
  return {
    driver: readStateFile(`${directory}/firewall-driver`),
    networks: each("networks", (document) => networkOf(document, containers)),
    containers: containers.flatMap(containerOf),
  };
}

/** Who answers for names is only written for containers. */
function networkOf(document: Document, containers: readonly Document[]): NetworkRulesSpec {
  const networkId = text(document, "network_id"), subnets = texts(document, "subnets");
  const isolation = isolations[text(document, "isolation")];
  if (isolation === undefined) throw new Error(`"isolation" must be ${Object.keys(isolations).join(", ")}`);
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
    ports: mappings.filter(isObject).filter((each) => Object.hasOwn(protocolNumbers, String(each["protocol"])))
      .map(portOf),
  }];
}

function portOf(mapping: Document): PublishedPort {
  const hostIp = field(mapping, "host_ip");
  return {
    protocol: text(mapping, "protocol") as PublishedPort["protocol"],
    hostPort: Number(field(mapping, "host_port")),
    containerPort: Number(field(mapping, "container_port")),
    range: Math.max(Number(field(mapping, "range")), 1),
    ...typeof hostIp === "string" && hostIp !== "" && { hostIp },
  };
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
