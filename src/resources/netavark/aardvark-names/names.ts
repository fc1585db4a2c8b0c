/** Adds and removes a container's names in aardvark-dns, and sets the DNS servers of a network. */
import { exists, makeDirectories } from "../../../ffi/files.ts";
import { unlessUntrusted } from "../../../process/state-file.ts";
import { log } from "../shared/log.ts";
import { failureText, within } from "../shared/failure.ts";
import { reload, reloadOrStart, stop } from "./daemon.ts";
import {
  filesOf,
  hasFiles,
  placeFile,
  readFile,
  refuseBadName,
  shortenFile,
  whileNamesLocked,
  writeFile,
} from "./files.ts";
import { gatewaysIn, hasLine, withLine, withoutLine, withServers } from "./network-file.ts";
import type { AardvarkDaemon, NamesSpec } from "./spec.ts";

const MODULE = "netavark::dns::aardvark", ALIASES = "netavark::network::bridge";

/**
 * Returns whether the container has names now: not without aardvark-dns, or with an id that its files cannot hold. When it
 * fails, it leaves nothing.
 */
export function addNames(spec: NamesSpec): boolean {
  const { networks, directory } = spec;
  if (networks.length === 0 || !canHaveNames(spec)) return false;
  return within("error while applying dns entries", () => {
    for (const { name } of networks) refuseBadName(name);
    within(`failed to create aardvark-dns directory ${directory}`, () => makeDirectories(directory));
    refuseLoop(spec);
    whileNamesLocked(directory, () => {
      const wasIdle = !hasFiles(directory);
      try {
        for (const network of networks) addLine(spec, network);
        reloadOrStart(spec, wasIdle);
      } catch (error) {
        takeBack(spec);
        throw error;
      }
    });
    return true;
  });
}

/** Logs why not. */
export function canHaveNames({ binary, containerId }: Pick<NamesSpec, "binary" | "containerId">): boolean {
  if (binary === "" || !exists(binary)) {
    log("info", MODULE, `dns disabled because aardvark-dns path ${JSON.stringify(binary)} does not exists`);
    return false;
  }
  const reason = whyUnusable(containerId);
  if (reason === undefined) return true;
  log("warn", ALIASES, `invalid container id ${JSON.stringify(containerId)}: ${reason}, dns disabled`);
  return false;
}

/** Whether each network's file has a line of the container. */
export function hasNames({ directory, containerId, networks }: NamesSpec): boolean {
  return networks.every(({ name }) =>
    filesOf(directory, name).some((path) => hasLine(unlessUntrusted(() => readFile(path)) ?? "", containerId))
  );
}

function addLine({ directory, containerId, servers }: NamesSpec, network: NamesSpec["networks"][number]): void {
  const path = placeFile(directory, network.name, network.isInternal);
  const { addresses4, addresses6 } = network;
  const line = { containerId, addresses4, addresses6, names: usable(network.names), servers };
  writeFile(path, withLine(readFile(path), network, line));
}

function usable(names: readonly string[]): string[] {
  return names.filter((name) => {
    const reason = whyUnusable(name);
    if (reason === undefined) return true;
    log("warn", ALIASES, `invalid network alias ${JSON.stringify(name)}: ${reason}, ignoring this name`);
    return false;
  });
}

/** Spaces, commas and ends of lines separate fields. */
function whyUnusable(name: string): string | undefined {
  if (name === "") return "name is empty";
  // deno-lint-ignore no-control-regex
  return /[\u0000- ,\u007f]/.test(name) ? "name contains invalid chars" : undefined;
}

function takeBack(spec: NamesSpec): void {
  try {
    removeLines(spec);
  } catch (error) {
    log("warn", MODULE, `Failed to delete aardvark-dns entries after failed start: ${failureText(error)}`);
  }
}

/** Succeeds when there is nothing to remove. */
export function removeNames(spec: NamesSpec): void {
  if (!exists(spec.directory)) return;
  within("remove aardvark entries", () => whileNamesLocked(spec.directory, () => removeLines(spec)));
}

function removeLines(spec: NamesSpec): void {
  const { directory, containerId, networks } = spec;
  for (const path of networks.flatMap(({ name }) => filesOf(directory, name))) {
    const before = unlessUntrusted(() => readFile(path)) ?? "", after = withoutLine(before, containerId);
    if (after !== before) shortenFile(path, after);
  }
  if (hasFiles(directory)) reload(spec);
  else stop(spec);
}

/** Sets the servers for names outside of the network; without any, aardvark-dns asks the host's. */
export function setServers(daemon: AardvarkDaemon, network: string, servers: readonly string[]): void {
  refuseBadName(network);
  // podman calls this also when no container runs.
  if (filesOf(daemon.directory, network).length === 0) return;
  whileNamesLocked(daemon.directory, () => {
    for (const path of filesOf(daemon.directory, network)) {
      const text = readFile(path);
      refuseGateways(servers, new Map(gatewaysIn(text).map((gateway) => [gateway, network])), "network DNS server");
      writeFile(path, withServers(text, servers));
    }
    // podman is outside of the rootless namespace in this call, so it must be started with the next container.
    if (!reload(daemon) && !daemon.isRootless) reloadOrStart(daemon, false);
  });
}

/** Refuses servers that are a gateway of one of the networks: aardvark-dns would ask itself. */
export function refuseLoop({ networks, servers }: Pick<NamesSpec, "networks" | "servers">): void {
  const owners = new Map<string, string>();
  for (const { name, gateways } of networks.toReversed()) for (const gateway of gateways) owners.set(gateway, name);
  refuseGateways(servers, owners, "DNS server");
  for (const network of networks) refuseGateways(network.servers, owners, "network DNS server");
}

function refuseGateways(servers: readonly string[], owners: ReadonlyMap<string, string>, what: string): void {
  const server = servers.find((each) => owners.has(each));
  if (server === undefined) return;
  const is = what === "DNS server" ? "is" : "matches";
  throw new Error(
    `${what} ${server} ${is} the gateway of network ${JSON.stringify(owners.get(server))}; using it would cause ` +
      "aardvark-dns to forward queries to itself.",
  );
}
