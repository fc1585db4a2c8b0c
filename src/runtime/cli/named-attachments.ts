/**
 * The attachments that a person means. A container has these names: its ID, the path of its network namespace, also as
 * `pid:N`, and the name that `ip netns` has for it. The beginning of an ID that is a hash names it, too.
 */
import type { KnownAttachment } from "../../engine/operator/known-attachment.ts";
import { exists } from "../../ffi/files.ts";
import { closestName } from "../spelling.ts";
import { namedPath, NETNS_DIRECTORY } from "./network-arguments.ts";

type Named = Pick<KnownAttachment, "containerId" | "netnsPath">;

/** Throws when the text begins the IDs of several containers. */
export function namedBy<T extends Named>(text: string, all: readonly T[]): T[] {
  const named = all.filter((one) => isNamed(one, text));
  if (named.length > 0 || !mayBegin(text)) return named;
  const begun = all.filter(({ containerId }) => HASH.test(containerId) && containerId.startsWith(text));
  const ids = [...new Set(begun.map(({ containerId }) => containerId))].sort();
  if (ids.length > 1) throw new Error(`"${text}" begins the IDs of several containers: ${ids.join(", ")}`);
  return begun;
}

/** As engines and cnitool make them. The beginning of an ID that people choose is often another container's: web, web1. */
const HASH = /^(cnitool-)?[0-9a-f]{20,}$/;

/** A namespace that is not attached is meant itself. */
function mayBegin(text: string): boolean {
  return /^(cnitool-)?[0-9a-f]{4,}$/.test(text) && !exists(`${NETNS_DIRECTORY}/${text}`);
}

function isNamed({ containerId, netnsPath }: Named, text: string): boolean {
  if (containerId === text) return true;
  const path = shortest(netnsPath);
  return path !== "" && (path === shortest(namedPath(text)) || path === `${NETNS_DIRECTORY}/${text}`);
}

/** The beginning of an ID of 64 hexadecimal digits, by which container engines name it in their lists. */
export function shortId(containerId: string): string {
  return /^[0-9a-f]{64}$/.test(containerId) ? containerId.slice(0, 12) : containerId;
}

/** How `ip netns` calls the namespace, or its path. */
export function namespaceName(netnsPath: string): string {
  const path = shortest(netnsPath);
  return path.startsWith(`${NETNS_DIRECTORY}/`) ? path.slice(NETNS_DIRECTORY.length + 1) : path;
}

/** /var/run is a link to /run. */
function shortest(path: string): string {
  return path.startsWith("/var/run/") ? path.slice("/var".length) : path;
}

const NO_RECORD = "no ledger and no cached result names it";

export function nothingAttached(network: string, all: readonly KnownAttachment[]): string {
  const meant = closestName(network, [...new Set(all.map((attachment) => attachment.network))]);
  return `nothing is attached to network "${network}"; ${NO_RECORD}${hint(meant)}`;
}

export function notAttached(container: string, network: string, all: readonly KnownAttachment[]): string {
  const ofNetwork = all.filter((attachment) => attachment.network === network);
  const interfaces = namedBy(container, ofNetwork).map(({ ifName }) => ifName);
  if (interfaces.length > 0) {
    return `"${container}" is attached to network "${network}" as ${interfaces.join(" and ")}; say so with --ifname`;
  }
  const names = new Set(ofNetwork.flatMap((one) => [one.containerId, namespaceName(one.netnsPath)]));
  const meant = closestName(container, [...names].filter((name) => name !== ""));
  return `"${container}" is not attached to network "${network}"; ${NO_RECORD}${hint(meant)}`;
}

function hint(meant: string | undefined): string {
  return meant === undefined ? "" : `; did you mean "${meant}"?`;
}
