/** The arguments that the commands on networks share: options, and cnitool's environment variables in their stead. */
import { CniError, errorText, INVALID_ENVIRONMENT } from "../../cni/error.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import { absolutePath } from "../../ffi/absolute-path.ts";
import { variable } from "../../ffi/environment.ts";
import { closeFile } from "../../ffi/files.ts";
import { openNetns } from "../../ffi/netns.ts";
import { readCache } from "../../runtime/cache.ts";
import { loadedOrRecorded, loadNetwork } from "../../runtime/conf/load.ts";
import {
  configDirectoryOfCaller,
  DEFAULT_CACHE_DIRECTORY,
  DEFAULT_CONFIG_DIRECTORY,
  NETNS_DIRECTORY,
} from "../../runtime/paths.ts";
import type { AttachmentRequest, Runtime } from "../../runtime/plugin-call.ts";
import type { Network } from "../../runtime/conf/network.ts";
import type { Command, GivenArguments, OptionTable } from "./command.ts";
import { printToStderr } from "../../process/output.ts";

export const runtimeOptions: OptionTable = {
  "config-dir": {
    value: "DIR",
    isNeverEmpty: true,
    help: `directory of network configurations ($NETCONFPATH, ${DEFAULT_CONFIG_DIRECTORY})`,
  },
  "plugin-path": {
    value: "DIRS",
    help: "plugin directories, joined by ':' ($CNI_PATH; without it, the plugins in patchbay)",
  },
  "cache-dir": { value: "DIR", isNeverEmpty: true, help: `directory of cached results (${DEFAULT_CACHE_DIRECTORY})` },
};

/** In place of $CAP_ARGS: what `capabilityArgsOf` reads. */
export const capabilityOptions: OptionTable = {
  ports: { value: "LIST", help: "ports of the host, as in 8080:80,127.0.0.1:53:53/udp" },
  ip: { value: "ADDRESS", help: "this address, with or without a prefix length; may be repeated" },
  mac: { value: "MAC", help: "this MAC address" },
  ingress: { value: "RATE", help: "so many bits per second towards the container, as in 100M" },
  egress: { value: "RATE", help: "so many bits per second from the container" },
};

const attachmentOptions: OptionTable = {
  ifname: {
    short: "i",
    value: "NAME",
    isNeverEmpty: true,
    help: "the interface's name in the container ($CNI_IFNAME, eth0)",
  },
  "container-id": {
    value: "ID",
    isNeverEmpty: true,
    help: "the container's ID (a hash of NETNS, the same as cnitool's)",
  },
  ...runtimeOptions,
};

/** So many digits of an ID name its container: for commands that show something, and for commands that remove something. */
export const DIGITS_TO_SHOW = 4, DIGITS_TO_REMOVE = 12;

export function containerNote(digits: number, subject = "CONTAINER is the container's"): string {
  return `${subject} ID, its network namespace (a path, a name of 'ip netns', or pid:N), or what its\n` +
    "engine calls it: podman's name, or a pod as NAMESPACE/NAME or NAME. At least\n" +
    `the first ${digits} digits name it, too, when the ID is a hash or a UUID, as engines make them.\n`;
}

export const ARGUMENTS_NOTE =
  "$CNI_ARGS has the form K=V;K=V. $CAP_ARGS is a JSON object of capability arguments, as in\n" +
  `  CAP_ARGS='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'\n`;

/** For the help of a command that takes back what it has begun. */
export const INTERRUPTION_STATUS =
  "1 when it fails; 130 or 143 when SIGINT or SIGTERM ends it. What it made is then taken back.";

/** The arguments of commands on one attachment, which `requestOf` reads. */
export const attachmentArguments = {
  operands: "NETWORK NETNS",
  operandCount: [2, 2],
  needsRoot: true,
  options: attachmentOptions,
  notes: `NETNS is a path, a name of 'ip netns', or pid:N for the namespace of process N.\n${ARGUMENTS_NOTE}`,
} satisfies Partial<Command>;

export function runtimeOf(given: GivenArguments): Runtime {
  const cacheDirectory = given.value("cache-dir");
  return {
    configDirectory: configDirectoryOf(given),
    pluginPath: given.value("plugin-path") ?? variable("CNI_PATH") ?? "",
    cacheDirectory: cacheDirectory === undefined ? DEFAULT_CACHE_DIRECTORY : absolutePath(cacheDirectory),
  };
}

export function configDirectoryOf(given: GivenArguments): string {
  return given.value("config-dir") ?? configDirectoryOfCaller();
}

export function givenNetwork(given: GivenArguments, name = given.operands[0]!): Network {
  return loadNetwork(configDirectoryOf(given), name);
}

/** For clean-up: `recorded` supplies a network that is no longer configured. */
export function networkOrRecorded(
  given: GivenArguments,
  name: string,
  recorded: () => Network | undefined,
): ReturnType<typeof loadedOrRecorded> {
  return loadedOrRecorded(() => givenNetwork(given, name), recorded);
}

/** The network may be podman's, or its file is gone. */
export function tellUnconfigured(given: GivenArguments, network: string): void {
  const directory = configDirectoryOf(given);
  printToStderr(`network ${network} is not configured in ${directory}; what is recorded of it is undone`);
}

export function requestOf(given: GivenArguments): AttachmentRequest {
  const [CAP_ARGS, CNI_ARGS, CNI_IFNAME] = ["CAP_ARGS", "CNI_ARGS", "CNI_IFNAME"].map(variable);
  const capabilityArgs = CAP_ARGS ? capabilityArgsIn(CAP_ARGS) : {};
  const cniArgs = CNI_ARGS ? CNI_ARGS.split(";").map(parsePair) : [];
  const ifName = given.value("ifname") || CNI_IFNAME || "eth0";
  const idOf = (path: string) => given.value("container-id") || containerIdOf(path);
  const netnsPath = netnsPathOf(given.operands[1]!, (path) => {
    const key = { network: given.operands[0]!, containerId: idOf(path), ifName };
    return readCache(runtimeOf(given).cacheDirectory, key).state === "present";
  });
  return { containerId: idOf(netnsPath), netnsPath, ifName, cniArgs, capabilityArgs };
}

/** With the capability arguments that options say, which win over $CAP_ARGS. */
export function requestTo(network: Network, given: GivenArguments): AttachmentRequest {
  const request = requestOf(given);
  if (!Object.keys(capabilityOptions).some((option) => given.has(option))) return request;
  const { capabilityArgsOf } = require("./capability-options.ts") as typeof import("./capability-options.ts");
  return { ...request, capabilityArgs: { ...request.capabilityArgs, ...capabilityArgsOf(given, network) } };
}

/** `pid:N`: the process with this number; undefined for another name. */
export function pidIn(text: string): number | undefined {
  const digits = text.startsWith("pid:") ? text.slice("pid:".length) : "";
  return /^[1-9][0-9]{0,9}$/.test(digits) ? Number(digits) : undefined;
}

/** The path that somebody names: as it is, or by a process. */
export function namedPath(text: string): string {
  const pid = pidIn(text);
  return pid === undefined ? absolutePath(text) : `/proc/${pid}/ns/net`;
}

/**
 * A bare name is a path when there is a namespace at it, or when the container was attached by that path. Otherwise it
 * names a namespace of `ip netns`.
 */
function netnsPathOf(text: string, isAttached: (path: string) => boolean): string {
  const path = namedPath(text);
  return text.includes("/") || pidIn(text) !== undefined || isNetns(path) || isAttached(path)
    ? path
    : `${NETNS_DIRECTORY}/${text}`;
}

export function isNetns(path: string): boolean {
  try {
    closeFile(openNetns(path));
    return true;
  } catch {
    return false;
  }
}

function capabilityArgsIn(text: string): Record<string, unknown> {
  const subject = `CAP_ARGS: ${beginning(text)}`;
  try {
    // cnitool reads "null" as no arguments.
    const args = parseDocument(text, subject) ?? {};
    if (isObject(args)) return args;
    throw new Error(`${subject}: it must be a JSON object`);
  } catch (error) {
    const nextStep = `it has the form '{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'; ` +
      "--ports, --ip, --mac, --ingress and --egress of 'add' say the same";
    throw new CniError(INVALID_ENVIRONMENT, errorText(error), "", { nextStep });
  }
}

function beginning(text: string): string {
  const most = 100;
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function parsePair(pair: string): [string, string] {
  const parts = pair.split("=");
  if (parts.length !== 2 || parts.includes("")) {
    throw new CniError(
      INVALID_ENVIRONMENT,
      `invalid CNI_ARGS pair "${pair}"`,
      `CNI_ARGS is "${variable("CNI_ARGS")}"`,
      { nextStep: 'it has the form KEY=VALUE;KEY=VALUE, without ";" at the end; a value has no "="' },
    );
  }
  return parts as [string, string];
}

/** Derived as cnitool does it, so that each of the two programs can delete what the other added. */
function containerIdOf(netnsPath: string): string {
  return `cnitool-${new Bun.CryptoHasher("sha512").update(netnsPath).digest("hex").slice(0, 20)}`;
}
