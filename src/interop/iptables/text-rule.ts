/**
 * Rules as text, the way iptables-save(8) of the older kernel tables prints them and iptables-restore(8) reads them.
 * Pure.
 */
import { formatAddress, formatPrefix, networkOf } from "../../net/address.ts";
import { type AddressMatch, type IptablesRule, type LinkMatch, type Mark, stateBits, type Target } from "./rule.ts";

/** Everything after `-A CHAIN `. */
export function ruleText(rule: IptablesRule): string {
  const { source, destination, inLink, outLink, protocol, comment, states } = rule;
  const { toLocal, destinationPorts, destinationPort, mark } = rule;
  const words = [
    ...addressWords("-s", source),
    ...addressWords("-d", destination),
    ...linkWords("-i", inLink),
    ...linkWords("-o", outLink),
  ];
  if (protocol !== undefined) words.push("-p", protocol);
  if (comment !== undefined) words.push("-m", "comment", "--comment", quoted(comment));
  if (states !== undefined) {
    const listed = Object.keys(stateBits).filter((state) => (states as readonly string[]).includes(state));
    words.push("-m", "conntrack", "--ctstate", listed.join(","));
  }
  if (toLocal) words.push("-m", "addrtype", "--dst-type", "LOCAL");
  if (destinationPorts !== undefined) words.push("-m", "multiport", "--dports", destinationPorts.join(","));
  if (destinationPort !== undefined) words.push("-m", protocol!, "--dport", String(destinationPort));
  if (mark !== undefined) words.push("-m", "mark", ...mark.not ? ["!"] : [], "--mark", markText(mark));
  words.push(...targetWords(rule.target));
  return words.join(" ");
}

function addressWords(option: string, match: AddressMatch | undefined): string[] {
  if (match === undefined || match.prefix.bits === 0) return [];
  const { prefix: { bytes, bits }, not } = match;
  return [...not ? ["!"] : [], option, formatPrefix({ bytes: networkOf({ bytes, bits }), bits })];
}

function linkWords(option: string, match: LinkMatch | undefined): string[] {
  if (match === undefined) return [];
  // iptables-save does not quote link names, so a name must be one word as it is.
  if (/[\s\p{Cc}"'\\]/u.test(match.name)) throw new Error(`iptables cannot take ${JSON.stringify(match.name)}`);
  return [...match.not ? ["!"] : [], option, match.name];
}

function targetWords(target: Target): string[] {
  if (typeof target === "string") return ["-j", target];
  if ("jump" in target) return ["-j", target.jump];
  if ("setMark" in target) {
    const { value, mask } = target.setMark;
    return ["-j", "MARK", "--set-xmark", `${hex(value)}/${hex(mask)}`];
  }
  const { address, port } = target.dnat;
  const text = formatAddress(address);
  return ["-j", "DNAT", "--to-destination", `${address.length === 4 ? text : `[${text}]`}:${port}`];
}

function markText({ value, mask }: Mark): string {
  return mask >>> 0 === 0xffffffff ? hex(value) : `${hex(value)}/${hex(mask)}`;
}

function hex(value: number): string {
  return `0x${(value >>> 0).toString(16)}`;
}

/** Quotes as iptables-save does: unless there are only letters, digits, `_` and `-`. A line break would end the rule. */
export function quoted(text: string): string {
  if (/\p{Cc}/u.test(text)) throw new Error(`iptables cannot take control characters: ${JSON.stringify(text)}`);
  return /^[\w-]+$/.test(text) ? text : `"${text.replace(/["'\\]/g, "\\$&")}"`;
}

/** The words of a line, without their quotes. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  for (const [, inQuotes, plain] of line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)) {
    words.push(plain ?? inQuotes!.replace(/\\(.)/g, "$1"));
  }
  return words;
}

/** The word after the first of these options that is not itself the text of a comment. */
export function wordAfter(words: readonly string[], ...options: string[]): string | undefined {
  const at = words.findIndex((word, index) => options.includes(word) && words[index - 1] !== "--comment");
  return at < 0 ? undefined : words[at + 1];
}
