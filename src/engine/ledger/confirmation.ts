/**
 * Which ADD of a ledger prevResult belongs to.
 *
 * A ledger is our memory, not the truth: another program may have deleted the attachment and made it again since, or an
 * engine may have called ADD again. prevResult decides which ADD counts: each ADD picks its own names, MAC addresses
 * and IP addresses, and prevResult contains them.
 */
import { isObject } from "../../cni/json.ts";
import type { Interface, Result } from "../../cni/result.ts";
import { parsePrevResult } from "../../cni/result-versions.ts";
import type { Host } from "../../contract/host.ts";
import { getLink } from "../../ffi/netlink/route/link.ts";
import { canonicalPrefix } from "../../net/address.ts";
import { canonicalMac } from "../../net/mac.ts";
import { listLedgersOf } from "./ledger.ts";
import type { AddAnswer, LedgerAdd, LedgerRecord } from "./record.ts";

export function answerOf({ interfaces = [], ips = [] }: Result, ifName: string): AddAnswer {
  const links: string[] = [], addresses: string[] = [];
  for (const { name, sandbox } of interfaces) if (!sandbox) links.push(name);
  for (const { address } of ips) addresses.push(canonicalPrefix(address) ?? address);
  return { links, mac: links.length === 0 ? macInside(interfaces, ifName) : undefined, addresses };
}

/**
 * The usual case, decided without decoding the result: it contains some ADD's answer literally. `prevResult` is parsed
 * but not validated. Written as loops because every DEL runs them (docs/decisions/0005).
 */
export function isPlainlyConfirmed({ adds, header }: LedgerRecord, prevResult: unknown): boolean {
  if (!isObject(prevResult)) return false;
  const { interfaces, ips = [] } = prevResult;
  if (!Array.isArray(interfaces) || !Array.isArray(ips)) return false;
  for (const { answer } of adds) {
    if (answer !== undefined && isContainedIn(interfaces, ips, answer, header.ifName)) return true;
  }
  return false;
}

function isContainedIn(
  interfaces: unknown[],
  ips: unknown[],
  { links, mac, addresses }: AddAnswer,
  ifName: string,
): boolean {
  const missing = new Set([...links, ...addresses]);
  let inside: unknown;
  for (const ip of ips) if (isObject(ip)) missing.delete(String(ip["address"]));
  for (const link of interfaces) {
    if (!isObject(link)) continue;
    if (!link["sandbox"]) missing.delete(String(link["name"]));
    else if (link["name"] === ifName) inside = link["mac"];
  }
  return missing.size === 0 && (mac === undefined || inside === mac);
}

/** The ADD that prevResult belongs to, or undefined when others have made the attachment since. */
export function confirmedAdd(record: LedgerRecord, prevResult: Result): LedgerAdd | undefined {
  return find(record, prevResult, () => listLedgersOf(record.header));
}

/**
 * Later plugins of a chain may alter an earlier plugin's result, such as the MAC. Then their own ledgers contain the
 * result from before.
 */
function find(record: LedgerRecord, result: Result, siblings: () => LedgerRecord[]): LedgerAdd | undefined {
  const direct = lastAddIn(record, result);
  if (direct !== undefined) return direct;
  const others = siblings().filter(({ path }) => path !== record.path);
  for (const other of others) {
    const add = lastAddIn(other, result), before = add && givenTo(add);
    const found = before && find(record, before, () => others.filter(({ path }) => path !== other.path));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The last ADD whose answer, or whose own prevResult, is contained in `result`. */
function lastAddIn({ adds, header: { ifName } }: LedgerRecord, result: Result): LedgerAdd | undefined {
  return adds.findLast((add) => {
    if (add.answer === undefined || contains(result, add.answer, ifName)) return add.answer !== undefined;
    const given = givenTo(add);
    return given !== undefined && contains(result, answerOf(given, ifName), ifName);
  });
}

/** A result may contain more than the answer: what later plugins made. Results before 0.3 contain no links. */
function contains({ interfaces, ips = [] }: Result, { links, mac, addresses }: AddAnswer, ifName: string): boolean {
  // Engines may write addresses in another form.
  const given = ips.map(({ address }) => canonicalPrefix(address) ?? address);
  for (const address of addresses) if (!given.includes(address)) return false;
  if (interfaces === undefined) return true;
  for (const link of links) if (!interfaces.some(({ name, sandbox }) => name === link && !sandbox)) return false;
  const inside = macInside(interfaces, ifName);
  return !mac || !inside || inside === mac;
}

function macInside(interfaces: readonly Interface[], ifName: string): string | undefined {
  const mac = interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox)?.mac;
  return mac && (canonicalMac(mac) ?? mac);
}

/** The prevResult that this ADD was called with. */
function givenTo({ header }: LedgerAdd): Result | undefined {
  try {
    return parsePrevResult(JSON.parse(header.stdin));
  } catch {
    return undefined;
  }
}

/** Whether the container has the link that a result names. */
export function hasLinkOf(
  { interfaces = [] }: Result,
  ifName: string,
  { container }: Pick<Host, "container">,
): boolean {
  if (container === undefined) return false;
  const mac = interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox === container.netnsPath)?.mac;
  return !!mac && getLink(container.route, ifName)?.mac === (canonicalMac(mac) ?? mac);
}
