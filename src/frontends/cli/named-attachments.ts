/**
 * The attachments that a person means. A container has these names: its ID, the path of its network namespace, also as
 * `pid:N`, the name that `ip netns` has for it, and what its engine calls it. The beginning of an ID that is a hash or
 * a UUID names it, too.
 */
import { type KnownAttachment, placedIn } from "../../engine/operator/known-attachment.ts";
import { exists, idAt } from "../../ffi/files.ts";
import { closestName } from "../../cni/spelling.ts";
import { DIGITS_TO_REMOVE, isNetns, namedPath, pidIn } from "./network-arguments.ts";
import { NETNS_DIRECTORY } from "../../runtime/paths.ts";

type Named = Pick<KnownAttachment, "containerId" | "netnsPath" | "names">;

/**
 * Throws when the text begins the IDs of several containers, or begins one and is what an engine calls another. A person
 * who types the same text once more must not hit another container: `digits` is DIGITS_TO_REMOVE for commands that remove.
 */
export function namedBy<T extends Named>(text: string, all: readonly T[], digits: number): T[] {
  const certain = all.filter((one) => one.containerId === text || isAt(one, text));
  if (certain.length > 0) return certain;
  const named = all.filter((one) => isCalled(one, text));
  if (named.length > 0) {
    const begun = begunBy(text, all, digits).filter((one) =>
      !named.some((each) => each.containerId === one.containerId)
    );
    if (begun.length === 0) return named;
    const [one, other] = [named, begun].map(([first]) => first!.containerId);
    throw new Error(`"${text}" is a name of container ${one}, and begins the ID of ${other}`);
  }
  const id = idAt(pathNamed(text), true), inside = id === undefined ? [] : all.filter(isIn(id));
  if (inside.length > 0) return inside;
  const begun = begunBy(text, all, digits);
  const ids = [...new Set(begun.map(({ containerId }) => containerId))].sort();
  if (ids.length > 1) throw new Error(`"${text}" begins the IDs of several containers: ${ids.join(", ")}`);
  return begun;
}

function begunBy<T extends Named>(text: string, all: readonly T[], digits: number): T[] {
  if (!mayBegin(text, digits)) return [];
  return all.filter(({ containerId }) => MADE_ID.test(containerId) && containerId.startsWith(text));
}

/** As `namedBy`. An attachment whose namespace no record names is found by its namespace, too. */
export function namedOrPlaced(text: string, all: readonly KnownAttachment[], digits: number): KnownAttachment[] {
  const named = namedBy(text, all, digits), path = pathNamed(text);
  const unplaced = named.length > 0 ? [] : all.filter(({ netnsPath }) => netnsPath === "");
  return unplaced.length > 0 && isNetns(path) ? unplaced.flatMap((one) => placedIn(one, path) ?? []) : named;
}

/** A namespace may have several paths. */
function isIn(id: string): (one: Named) => boolean {
  return ({ netnsPath }) => netnsPath !== "" && idAt(netnsPath, true) === id;
}

function pathNamed(text: string): string {
  return text.includes("/") || pidIn(text) !== undefined ? namedPath(text) : `${NETNS_DIRECTORY}/${text}`;
}

/** As engines and cnitool make them. The beginning of an ID that people choose is often another container's: web, web1. */
const MADE_ID = /^(cnitool-)?([0-9a-f]{20,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Whether the text may be the beginning of an ID. Where a namespace has this name, the namespace is meant. */
function mayBegin(text: string, least: number): boolean {
  const [, beginning] = /^(?:cnitool-)?([0-9a-f][0-9a-f-]*)$/.exec(text) ?? [],
    digits = beginning?.replaceAll("-", "");
  return digits !== undefined && digits.length >= least && !exists(`${NETNS_DIRECTORY}/${text}`);
}

/** Undefined when the text begins no ID, or has enough digits of it. */
export function whyTooShort(text: string, all: readonly Named[], digits = DIGITS_TO_REMOVE): string | undefined {
  const begun = mayBegin(text, 1) && !mayBegin(text, digits) &&
    all.find(({ containerId }) => MADE_ID.test(containerId) && containerId.startsWith(text));
  return begun ? `${begun.containerId} begins so: write at least ${digits} digits of it` : undefined;
}

function isAt({ netnsPath }: Named, text: string): boolean {
  const path = shortest(netnsPath);
  return path !== "" && (path === shortest(namedPath(text)) || path === `${NETNS_DIRECTORY}/${text}`);
}

/** Whether its engine calls it so. Users choose these names, so they count for less than an ID or a path. */
function isCalled({ names }: Named, text: string): boolean {
  return names.includes(text) && !exists(`${NETNS_DIRECTORY}/${text}`);
}

/** The beginning of an ID of 64 hexadecimal digits, by which container engines name it in their lists. */
export function shortId(containerId: string): string {
  return /^[0-9a-f]{64}$/.test(containerId) ? containerId.slice(0, 12) : containerId;
}

/** What tables show beside the ID: its engine's name, or its namespace's. */
export function shownName({ netnsPath, names: [name] }: Omit<Named, "containerId">): string | undefined {
  return name ?? (namespaceName(netnsPath) || undefined);
}

/** The ID, with its engine's name. */
export function withName({ containerId, names: [name] }: Omit<Named, "netnsPath">): string {
  return name === undefined || name === containerId ? containerId : `${containerId} (${name})`;
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

/** `configured`: the networks that have a file. The name of one of them is no slip. */
export function nothingAttached(
  network: string,
  all: readonly KnownAttachment[],
  configured: readonly string[],
): string {
  const names = [...new Set([...all.map((attachment) => attachment.network), ...configured])];
  const meant = configured.includes(network) ? undefined : closestName(network, names);
  return `nothing is attached to network "${network}"; ${NO_RECORD}${hint(meant)}`;
}

/** `meant`: what of the name is probably a slip. */
export interface NotAttached {
  readonly text: string;
  readonly meant: "another container" | "another interface" | "itself";
}

/** `digits` as in `namedBy`. For an exact name nothing is guessed. `ifName`: the interface that somebody named. */
export function notAttached(
  container: string,
  network: string,
  all: readonly KnownAttachment[],
  digits: number,
  isExact = isExactName(container),
  ifName?: string,
): NotAttached {
  const ofNetwork = all.filter((attachment) => attachment.network === network);
  const interfaces = namedBy(container, ofNetwork, digits).map(({ ifName }) => ifName);
  if (interfaces.length > 0) {
    const those = interfaces.join(" and "), of = `"${container}" is`, to = `attached to network "${network}"`;
    const text = ifName === undefined
      ? `${of} ${to} as ${those}; say so with --ifname`
      : `${of} not ${to} as ${ifName}, but as ${those}`;
    return { text, meant: "another interface" };
  }
  const names = new Set(ofNetwork.flatMap((one) => [one.containerId, namespaceName(one.netnsPath), ...one.names]));
  const closest = closestName(container, [...names].filter((name) => name !== ""));
  const tooShort = whyTooShort(container, ofNetwork, digits);
  const next = isExact ? "" : tooShort === undefined ? hint(closest) : `; ${tooShort}`;
  const text = `"${container}" is not attached to network "${network}"; ${NO_RECORD}${next}`;
  return { text, meant: next === "" ? "itself" : "another container" };
}

/** A path, a process, or a namespace that is there: such a name is no slip. */
function isExactName(text: string): boolean {
  return text.includes("/") || pidIn(text) !== undefined || exists(`${NETNS_DIRECTORY}/${text}`);
}

function hint(meant: string | undefined): string {
  return meant === undefined ? "" : `; did you mean "${meant}"?`;
}
