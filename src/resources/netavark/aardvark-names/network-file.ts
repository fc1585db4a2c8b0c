/**
 * The text of a network's file, which aardvark-dns reads: a head with the addresses to listen on and the network's
 * servers, then a line for each container. Pure.
 */
import { parseAddress } from "../../../net/address.ts";

/** aardvark-dns ignores the whole file when a line has fewer. */
const LEAST_FIELDS = 4;

export interface Head {
  gateways: readonly string[];
  servers: readonly string[];
}

export interface Line {
  containerId: string;
  addresses4: readonly string[];
  addresses6: readonly string[];
  names: readonly string[];
  servers: readonly string[];
}

export function formatHead({ gateways, servers }: Head): string {
  return servers.length === 0 ? gateways.join() : `${gateways.join()} ${servers.join()}`;
}

function formatLine({ containerId, addresses4, addresses6, names, servers }: Line): string {
  const fields = [containerId, addresses4.join(), addresses6.join(), names.join()];
  return (servers.length === 0 ? fields : [...fields, servers.join()]).join(" ");
}

interface Parts {
  /** Undefined when it is missing or malformed. */
  head: string | undefined;
  lines: readonly string[];
}

/** Leaves out lines that a writer did not finish. */
function partsOf(text: string): Parts {
  const [head = "", ...lines] = text.split("\n");
  return {
    head: gatewaysIn(head).length > 0 ? head : undefined,
    lines: lines.filter((line) => line.split(" ").length >= LEAST_FIELDS),
  };
}

/** The addresses in a head; empty when one of them is malformed. */
export function gatewaysIn(text: string): string[] {
  const addresses = text.split("\n", 1)[0]!.split(" ", 1)[0]!.split(",");
  return addresses.every((address) => parseAddress(address) !== undefined) ? addresses : [];
}

function textOf(head: string, lines: readonly string[]): string {
  return [head, ...lines].map((line) => `${line}\n`).join("");
}

/** Replaces the container's line. Keeps an existing head, because other containers were started with it. */
export function withLine(text: string, head: Head, line: Line): string {
  const { head: before, lines } = partsOf(text);
  const others = lines.filter((other) => idOf(other) !== line.containerId);
  return textOf(before ?? formatHead(head), [...others, formatLine(line)]);
}

/** Returns the empty text when no container is left. */
export function withoutLine(text: string, containerId: string): string {
  const { head = "", lines } = partsOf(text), others = lines.filter((line) => idOf(line) !== containerId);
  return others.length === 0 ? "" : textOf(head, others);
}

export function withServers(text: string, servers: readonly string[]): string {
  const { lines } = partsOf(text);
  return textOf(formatHead({ gateways: gatewaysIn(text), servers }), lines);
}

export function hasLine(text: string, containerId: string): boolean {
  return partsOf(text).lines.some((line) => idOf(line) === containerId);
}

function idOf(line: string): string {
  return line.slice(0, line.indexOf(" "));
}
