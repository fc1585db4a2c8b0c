/**
 * Which ADD of a ledger the runtime's result tells of.
 *
 * A ledger is a memory, not the truth: after it was written, another program may have deleted the attachment and made
 * it anew, or an engine may have called ADD again. prevResult names the ADD that counts. Each ADD picks names, MAC
 * addresses and addresses of its own, so it is known by them.
 */
import { isObject } from "../../cni/json.ts";
import type { Interface, Result } from "../../cni/result.ts";
import { parsePrevResult } from "../../cni/result-versions.ts";
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
 * The usual case, decided without decoding the result: some ADD's answer stands in it word for word. `prevResult` is as
 * it was parsed. Loops, as every DEL runs them (docs/decisions/0005).
 */
export function isPlainlyConfirmed({ adds, header }: LedgerRecord, prevResult: unknown): boolean {
  if (!isObject(prevResult)) return false;
  const { interfaces, ips = [] } = prevResult;
  if (!Array.isArray(interfaces) || !Array.isArray(ips)) return false;
  for (const { answer } of adds) {
    if (answer !== undefined && standsIn(interfaces, ips, answer, header.ifName)) return true;
  }
  return false;
}

function standsIn(
  interfaces: unknown[],
  ips: unknown[],
  { links, mac, addresses }: AddAnswer,
  ifName: string,
): boolean {
  const left = new Set([...links, ...addresses]);
  let inside: unknown;
  for (const ip of ips) if (isObject(ip)) left.delete(String(ip["address"]));
  for (const link of interfaces) {
    if (!isObject(link)) continue;
    if (!link["sandbox"]) left.delete(String(link["name"]));
    else if (link["name"] === ifName) inside = link["mac"];
  }
  return left.size === 0 && (mac === undefined || inside === mac);
}

/** The ADD of the ledger whose attachment this is, or undefined when others have made it since. */
export function confirmedAdd(record: LedgerRecord, prevResult: Result): LedgerAdd | undefined {
  return find(record, prevResult, () => listLedgersOf(record.header));
}

/**
 * Later plugins of a chain may alter what earlier ones answered, such as the MAC: then their own ledgers say what it was
 * before.
 */
function find(record: LedgerRecord, told: Result, siblings: () => LedgerRecord[]): LedgerAdd | undefined {
  const direct = lastToldOf(record, told);
  if (direct !== undefined) return direct;
  const others = siblings().filter(({ path }) => path !== record.path);
  for (const other of others) {
    const add = lastToldOf(other, told), before = add && givenTo(add);
    const found = before && find(record, before, () => others.filter(({ path }) => path !== other.path));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Told by its answer, or by what a plugin of a chain was called with. */
function lastToldOf({ adds, header: { ifName } }: LedgerRecord, told: Result): LedgerAdd | undefined {
  return adds.findLast((add) => {
    if (add.answer === undefined || tellsOf(told, add.answer, ifName)) return add.answer !== undefined;
    const given = givenTo(add);
    return given !== undefined && tellsOf(told, answerOf(given, ifName), ifName);
  });
}

/** A result may have more than the answer: what later plugins made. One of before 0.3 tells of no links. */
function tellsOf({ interfaces, ips = [] }: Result, { links, mac, addresses }: AddAnswer, ifName: string): boolean {
  // Engines may write addresses in another way.
  const told = ips.map(({ address }) => canonicalPrefix(address) ?? address);
  for (const address of addresses) if (!told.includes(address)) return false;
  if (interfaces === undefined) return true;
  for (const link of links) if (!interfaces.some(({ name, sandbox }) => name === link && !sandbox)) return false;
  const inside = macInside(interfaces, ifName);
  return !mac || !inside || inside === mac;
}

function macInside(interfaces: readonly Interface[], ifName: string): string | undefined {
  const mac = interfaces.findLast(({ name, sandbox }) => name === ifName && sandbox)?.mac;
  return mac && (canonicalMac(mac) ?? mac);
}

/** The result that this ADD, a later one of a chain, was called with. */
function givenTo({ header }: LedgerAdd): Result | undefined {
  try {
    return parsePrevResult(JSON.parse(header.stdin));
  } catch {
    return undefined;
  }
}
