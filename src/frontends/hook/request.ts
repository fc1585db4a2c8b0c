/**
 * Parses the networks that a container asks for: `front, back@eth7 ip=10.2.0.9 ip=fd02::9 mac=02:00:00:00:00:09
 * ingress=100M egress=20M`. Pure.
 */
import { errorText } from "../../cni/error.ts";
import { checkIfName, checkNetworkName } from "../../cni/invocation.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import { parsePorts, type RequestedPort } from "./ports.ts";
import { type HookSettings, refusal, type Setting } from "./settings.ts";
import { argsOfWords, MOST_ENTRIES, type Word, wordNames } from "./network-words.ts";

export interface RequestedNetwork {
  readonly network: string;
  readonly ifName: string;
  /** The setting names the interface. */
  readonly isNamed: boolean;
  readonly source: string;
  readonly capabilityArgs: Readonly<Record<string, unknown>>;
}

export interface HookRequest {
  readonly networks: readonly RequestedNetwork[];
  readonly ports: readonly RequestedPort[];
  /** Where the ports come from, when the container's author asks for them. */
  readonly annotatedPorts?: string;
  /** For every network, as $CAP_ARGS. */
  readonly capabilityArgs: Readonly<Record<string, unknown>>;
  readonly cniArgs: readonly (readonly [string, string])[];
}

/** `permitted`: capabilities that annotations may carry besides the usual ones. */
export function hookRequestOf(settings: HookSettings, permitted: readonly string[] = []): HookRequest {
  const { networks, ports, name, capabilities } = settings;
  return {
    networks: networks === undefined ? [] : parseNetworks(networks),
    ports: ports === undefined ? [] : parsePorts(ports),
    ...ports?.isAnnotation && { annotatedPorts: ports.source },
    capabilityArgs: capabilities === undefined ? {} : parseCapabilities(capabilities, permitted),
    cniArgs: name === undefined ? [] : argsWithName(name),
  };
}

export function parseNetworks(setting: Setting): RequestedNetwork[] {
  const items = setting.text.split(",");
  if (items.length > MOST_ENTRIES) {
    throw refusal(setting, setting.text, `there are more than ${MOST_ENTRIES} networks`);
  }
  const requested = items.map((item) => parseNetwork(setting, item.trim()));
  const taken = new Set<string>();
  for (const { item, ifName } of requested) {
    if (ifName !== undefined && taken.has(ifName)) {
      throw refusal(setting, item, `another network has the interface ${ifName}`);
    }
    if (ifName !== undefined) taken.add(ifName);
  }
  let next = 0;
  const free = () => {
    while (taken.has(`eth${next}`)) next++;
    return `eth${next++}`;
  };
  return requested.map(({ network, ifName, capabilityArgs }) => ({
    network,
    ifName: ifName ?? free(),
    isNamed: ifName !== undefined,
    source: setting.source,
    capabilityArgs,
  }));
}

function parseNetwork(setting: Setting, item: string) {
  const [place = "", ...words] = item.split(/\s+/), [network = "", ifName, ...more] = place.split("@");
  if (network === "") throw refusal(setting, item, "it must begin with the name of a network");
  if (more.length > 0) throw refusal(setting, item, "a network has the form NETWORK or NETWORK@IFNAME");
  try {
    checkNetworkName(network);
    if (ifName !== undefined) checkIfName(ifName);
  } catch (error) {
    throw refusal(setting, item, errorText(error));
  }
  return { item, network, ifName, capabilityArgs: argsOfWords(words.map((word) => parseWord(setting, item, word))) };
}

const WORDS = "after the network there may be ip=ADDRESS, mac=MAC, ingress=RATE, egress=RATE";

function parseWord(setting: Setting, item: string, text: string): Word {
  const [key, value = "", ...more] = text.split("="), name = wordNames.find((one) => one === key);
  if (name === undefined || more.length > 0) throw refusal(setting, item, WORDS);
  return { name, value, setting, text };
}

/** Capabilities that annotations may carry. Others choose devices, ranges of addresses and paths of the host. */
const ANNOTATED = ["aliases", "bandwidth", "dns", "ips", "mac"];

function parseCapabilities(setting: Setting, permitted: readonly string[]): Record<string, unknown> {
  const document = parseDocument(setting.text, setting.source);
  if (!isObject(document)) throw refusal(setting, setting.text, "it must be a JSON object of capability arguments");
  if (setting.isAnnotation) {
    for (const [name, value] of Object.entries(document)) {
      checkAnnotated(setting, name, permitted);
      checkCounts(setting, name, value);
    }
  }
  return document;
}

/** A capability is a list, or an object of lists, or a list of lists. */
function checkCounts(setting: Setting, name: string, capability: unknown): void {
  checkCount(setting, name, capability);
  if (typeof capability !== "object" || capability === null) return;
  for (const [key, value] of Object.entries(capability)) checkCount(setting, `${name}.${key}`, value);
}

function checkCount(setting: Setting, key: string, value: unknown): void {
  const count = typeof value === "object" && value !== null ? Object.keys(value).length : 0;
  if (count > MOST_ENTRIES) throw refusal(setting, key, `it has ${count} entries, more than ${MOST_ENTRIES}`);
}

function checkAnnotated(setting: Setting, name: string, permitted: readonly string[]): void {
  // That annotation has a limit of its own.
  if (name === "portMappings") throw refusal(setting, name, "ports go into the annotation dev.patchbay.ports");
  if (ANNOTATED.includes(name) || permitted.includes(name)) return;
  throw refusal(
    setting,
    name,
    `an annotation may carry ${ANNOTATED.join(", ")}, and what the hook's argument --permit names`,
  );
}

/** Passes the container's name as podman does. */
function argsWithName(setting: Setting): [string, string][] {
  if (/[;=\0]/.test(setting.text) || setting.text === "") {
    throw refusal(setting, setting.text, 'a name is not empty, and has no ";" and no "="');
  }
  return [["IgnoreUnknown", "1"], ["K8S_POD_NAME", setting.text]];
}
