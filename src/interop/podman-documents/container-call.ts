/** Reads stdin of `setup` and `teardown`: a container, and what it wants of each network. */
import { inside, list, missing, object } from "../../cni/decode.ts";
import { decodeText, parseDocument } from "../../cni/json.ts";
import { keysIn } from "../../cni/repeated-key.ts";
import { canonicalMac } from "../../net/mac.ts";
import type { ContainerCall, NamedAttachment, PodmanPortMapping } from "./netavark.schema.ts";
import { decodeContainerCall, decodeNamedAttachment } from "./netavark.validate.gen.ts";
import { checkedAddresses, checkedInteger, checkedNetwork } from "./network.ts";

const PORT_MAX = 65535;

/** `attachments` are the entries of `networks`, in the order of the text. */
export type CheckedCall = ContainerCall & {
  attachments: NamedAttachment[];
  /** Whether `networks` was a list. */
  isListed: boolean;
};

export function readContainerCall(input: Uint8Array): CheckedCall {
  const text = decodeText(input), document = object(parseDocument(text, "stdin"), "");
  const call = decodeContainerCall(document);
  const { port_mappings: mappings, dns_servers: servers } = call;
  const networks: ContainerCall["network_info"] = Object.create(null);
  for (const name of Object.keys(call.network_info)) {
    networks[name] = checkedNetwork(call.network_info[name]!, `network_info.${name}`);
  }
  return {
    ...call,
    network_info: networks,
    ...mappings &&
      { port_mappings: mappings.map((mapping, index) => checkedMapping(mapping, `port_mappings[${index}]`)) },
    ...servers && { dns_servers: checkedAddresses(servers, "dns_servers") },
    attachments: readAttachments(document["networks"], text),
    isListed: Array.isArray(document["networks"]),
  };
}

/** podman 6 sends a list, podman 4 and 5 send a map from the name to the rest. */
function readAttachments(networks: unknown, text: string): NamedAttachment[] {
  if (networks === undefined || networks === null) throw missing("networks");
  if (Array.isArray(networks)) {
    return list(networks, "networks", (entry, at) => checkedAttachment(decoded(entry, at), at));
  }
  const map = object(networks, "networks");
  return keysOf(map, text).map((name) => {
    const at = inside("networks", name);
    return checkedAttachment(decoded({ ...object(map[name], at), name }, at), at);
  });
}

function decoded(entry: unknown, at: string): NamedAttachment {
  try {
    return decodeNamedAttachment(object(entry, at));
  } catch (error) {
    throw new Error(`${at}: ${(error as Error).message}`, { cause: error });
  }
}

/** JavaScript puts keys that look like numbers first; podman allows such names. */
function keysOf(map: Record<string, unknown>, text: string): string[] {
  const keys = Object.keys(map);
  if (!keys.some((key) => /^[0-9]+$/.test(key))) return keys;
  return [...new Set(keysIn("networks", text).at(-1))];
}

function checkedAttachment(attachment: NamedAttachment, at: string): NamedAttachment {
  const { static_ips: addresses, static_mac: mac } = attachment;
  return {
    ...attachment,
    ...addresses && { static_ips: checkedAddresses(addresses, `${at}.static_ips`) },
    ...mac !== undefined && { static_mac: checkedMac(mac) },
  };
}

export function checkedMac(text: string): string {
  const groups = text.split(/[:-]/), wrong = groups.find((group) => !/^[0-9a-f]{1,2}$/i.test(group));
  if (wrong !== undefined) {
    const reason = wrong === "" ? "cannot parse integer from empty string" : "invalid digit found in string";
    throw new Error(`unable to parse mac address ${text}: ${reason}`);
  }
  const mac = canonicalMac(groups.map((group) => group.padStart(2, "0")).join(":"));
  if (mac === undefined) throw new Error(`invalid mac length for address: ${text}`);
  return mac;
}

function checkedMapping(mapping: PodmanPortMapping, at: string): PodmanPortMapping {
  for (const key of ["container_port", "host_port", "range"] as const) {
    checkedInteger(mapping[key], PORT_MAX, `${at}.${key}`);
  }
  const last = Math.max(mapping.host_port, mapping.container_port) + Math.max(mapping.range, 1) - 1;
  if (last > PORT_MAX) {
    throw new Error(`"${at}.range": ${mapping.range} ports would end at ${last}, after ${PORT_MAX}`);
  }
  return mapping;
}
