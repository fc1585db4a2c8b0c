/**
 * What the commands on networks have in common: cnitool's environment variables, the options that stand for them, and
 * the order in which they are looked at.
 */
import { CniError, INVALID_ENVIRONMENT } from "../../cni/error.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import { closeFile } from "../../ffi/files.ts";
import { openNetns } from "../../ffi/netns.ts";
import { DEFAULT_CACHE_DIRECTORY, readCache } from "../cache.ts";
import type { AttachmentRequest, Runtime } from "../chain.ts";
import { loadNetwork, type Network, UnknownNetworkError } from "../conf.ts";
import type { Given, Options } from "./command.ts";
import { complain } from "./print.ts";

export const runtimeOptions: Options = {
  "config-dir": { value: "DIR", help: "where networks are configured ($NETCONFPATH, /etc/cni/net.d)" },
  "plugin-path": { value: "DIRS", help: "where plugins are, joined by ':' ($CNI_PATH; else those in this program)" },
  "cache-dir": { value: "DIR", help: `where results are kept (${DEFAULT_CACHE_DIRECTORY})` },
};

export const attachmentOptions: Options = {
  ifname: { short: "i", value: "NAME", help: "name of the interface in the container ($CNI_IFNAME, eth0)" },
  "container-id": { value: "ID", help: "identifies the container (a hash of NETNS, the same that cnitool uses)" },
  ...runtimeOptions,
};

export const attachmentNotes = `$CAP_ARGS is a JSON object of capability arguments, $CNI_ARGS holds K=V;K=V.\n`;

export function runtimeOf(given: Given): Runtime {
  return {
    pluginPath: given.value("plugin-path") ?? process.env.CNI_PATH ?? "",
    cacheDirectory: given.value("cache-dir") ?? DEFAULT_CACHE_DIRECTORY,
  };
}

export function configDirectoryOf(given: Given | undefined): string {
  return given?.value("config-dir") ?? (process.env.NETCONFPATH || "/etc/cni/net.d");
}

export function networkOf(given: Given): Network {
  return loadNetwork(configDirectoryOf(given), given.operands[0]!);
}

/** For clean-up: where the network is not configured any more, what `former` answers, with a word about it. */
export function networkOrFormer(given: Given, former: () => Network | undefined): Network {
  try {
    return networkOf(given);
  } catch (error) {
    const network = error instanceof UnknownNetworkError ? former() : undefined;
    if (network === undefined) throw error;
    complain(`network ${network.name} is not configured any more; what is recorded of it is undone`);
    return network;
  }
}

export function requestOf(given: Given): AttachmentRequest {
  const { CAP_ARGS, CNI_ARGS, CNI_IFNAME } = process.env;
  // Go decodes "null" into no arguments.
  const capabilityArgs = (CAP_ARGS ? parseDocument(CAP_ARGS, "CAP_ARGS") : undefined) ?? {};
  if (!isObject(capabilityArgs)) throw new CniError(INVALID_ENVIRONMENT, "CAP_ARGS: it must be a JSON object");
  const cniArgs = CNI_ARGS ? CNI_ARGS.split(";").map(parsePair) : [];
  const ifName = given.value("ifname") || CNI_IFNAME || "eth0";
  const idOf = (path: string) => given.value("container-id") || containerIdOf(path);
  const netnsPath = netnsPathOf(given.operands[1]!, (path) => {
    const key = { network: given.operands[0]!, containerId: idOf(path), ifName };
    return readCache(runtimeOf(given).cacheDirectory, key).state === "present";
  });
  return { containerId: idOf(netnsPath), netnsPath, ifName, cniArgs, capabilityArgs };
}

/** Where ip-netns(8) keeps its namespaces. */
export const NAMED_NETNS = "/run/netns";

/** A bare name that leads to no namespace from here is one of ip-netns(8)'s; unless it was attached by its path here. */
function netnsPathOf(text: string, isAttached: (path: string) => boolean): string {
  const path = absolutePath(text);
  return text.includes("/") || isNetns(path) || isAttached(path) ? path : `${NAMED_NETNS}/${text}`;
}

function isNetns(path: string): boolean {
  try {
    closeFile(openNetns(path));
    return true;
  } catch {
    return false;
  }
}

function parsePair(pair: string): [string, string] {
  const parts = pair.split("=");
  if (parts.length !== 2 || parts.includes("")) {
    throw new CniError(INVALID_ENVIRONMENT, `invalid CNI_ARGS pair "${pair}"`);
  }
  return parts as [string, string];
}

/** By its text alone, as Go's filepath.Abs does it: links are not followed. */
export function absolutePath(path: string): string {
  const parts: string[] = [];
  for (const part of `${path.startsWith("/") ? "" : process.cwd()}/${path}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

/** cnitool's derivation, so that either program can end what the other began. */
function containerIdOf(netnsPath: string): string {
  return `cnitool-${new Bun.CryptoHasher("sha512").update(netnsPath).digest("hex").slice(0, 20)}`;
}
