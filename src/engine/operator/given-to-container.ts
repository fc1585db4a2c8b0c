/** What an attachment gave its container, as explanations ask for it: routes, name servers, a network without a way out. */
import type { NameServer } from "../../contract/resource.ts";
import { loadKind } from "../../resources/table.ts";
import { type KnownAttachment, resultIn } from "./known-attachment.ts";

/** Whether its networks gave it a way out; true, too, where no record says what they gave. */
export function hasDefaultRoute(attachment: KnownAttachment, family: 4 | 6): boolean {
  const routes = givenRoutes(attachment);
  return routes === undefined || routes.some((dst) => dst.endsWith("/0") && dst.includes(":") === (family === 6));
}

/** The destinations of the routes that it got; undefined where no record says. */
export function givenRoutes(attachment: KnownAttachment): string[] | undefined {
  const result = attachment.cached && resultIn(attachment.cached);
  if (result !== undefined) return (result.routes ?? []).map(({ dst }) => dst);
  const made = entriesIn(attachment).map(({ kind, spec }) => loadKind(kind)?.routesIn?.(spec));
  return made.every((routes) => routes === undefined) ? undefined : made.flatMap((routes) => routes ?? []);
}

const DNS = 53;

/** The servers of the result, and those that were made for the container. */
export function nameServersOf(attachment: KnownAttachment): NameServer[] {
  const { cached } = attachment;
  const made = entriesIn(attachment).flatMap(({ kind, spec }) => loadKind(kind)?.nameServers?.(spec) ?? []);
  const told = cached === undefined ? [] : resultIn(cached)?.dns?.nameservers ?? [];
  return [...told.map((address) => ({ address, port: DNS })), ...made];
}

/** The bridge of its internal network. */
export function closedBridge(attachment: KnownAttachment): string | undefined {
  return entriesIn(attachment).map(({ kind, spec }) => loadKind(kind)?.closes?.(spec)).find(Boolean);
}

/** The kinds of resources that were made. */
export function madeKinds(attachment: KnownAttachment): string[] {
  return entriesIn(attachment).map(({ kind }) => kind);
}

function entriesIn({ ledgers }: KnownAttachment) {
  return ledgers.flatMap(({ adds }) => adds.at(-1)!.entries);
}
