/** How `inspect` and `repair` show attachments: what is wrong comes first, and what many have alike is told once. */
import { counted } from "../../contract/counted.ts";
import type { Owner } from "../../contract/owner.ts";
import type { AttachmentState, Gist } from "../../contract/summaries.ts";
import { shortId, shownName, withName } from "./named-attachments.ts";
import { textTable } from "./text-table.ts";

interface ShownResource {
  kind: string;
  what: string;
  state: "ok" | "differs" | "unknown" | "mended";
  differences: string[];
  /** Why it was not repaired. */
  reason?: string;
}

/** `inspect` and `repair` fill in different parts. */
export interface ShownAttachment extends AttachmentState<ShownResource>, Partial<Gist> {
  /** What to do about what is wrong. */
  next?: string;
}

/** What a table calls the state of an attachment; the worst comes first. */
const LABELS = ["differs", "gone", "elsewhere", "mended", "ok"] as const;

function labelOf({ state, plugins }: ShownAttachment): typeof LABELS[number] {
  if (state !== "ok") return state;
  return plugins.some(({ resources }) => resources.some((one) => one.state === "mended")) ? "mended" : "ok";
}

/** Within a state by network, and by the name or the ID. */
function worstFirst(attachments: readonly ShownAttachment[]): ShownAttachment[] {
  const { compare } = new Intl.Collator("en", { numeric: true }); // c9 before c10
  const nameOf = (attachment: ShownAttachment) => shownName(attachment) ?? attachment.containerId;
  return attachments.toSorted((one, other) =>
    LABELS.indexOf(labelOf(one)) - LABELS.indexOf(labelOf(other)) || compare(one.network, other.network) ||
    compare(nameOf(one), nameOf(other))
  );
}

/** One attachment with everything that was made for it; of several, a table, and what is wrong. */
export function shownInFull(attachments: readonly ShownAttachment[]): string {
  const [first, ...others] = worstFirst(attachments);
  if (first === undefined) return "nothing is attached\n";
  if (others.length === 0) return `${table([first])}\n${describe([first], true)}`;
  const groups = Map.groupBy([first, ...others], likeness);
  const blocks = [...groups].flatMap(([alike, group]) => alike === "" ? [] : [describe(group, false)]);
  return [briefly([first, ...others]), ...blocks].join("\n");
}

/** A line that counts, and a line for each attachment. */
export function briefly(attachments: readonly ShownAttachment[]): string {
  return attachments.length === 0 ? "nothing is attached\n" : `${counts(attachments)}\n\n${table(attachments)}`;
}

function counts(attachments: readonly ShownAttachment[]): string {
  const labels = attachments.map(labelOf);
  const all = LABELS.flatMap((label) => {
    const count = labels.filter((one) => one === label).length;
    return count === 0 ? [] : [`${count} ${count > 1 && label === "differs" ? "differ" : label}`];
  });
  return `${counted(attachments.length, "attachment")}: ${all.join(", ")}`;
}

function table(attachments: readonly ShownAttachment[]): string {
  const rows = worstFirst(attachments).map((attachment) => [
    shortId(attachment.containerId),
    shownName(attachment) ?? "-",
    attachment.network,
    attachment.ifName,
    attachment.addresses?.join(" ") || "-",
    attachment.ports?.join(" ") || "-",
    stateOf(attachment),
  ]);
  return textTable([["container", "name", "network", "interface", "addresses", "ports", "state"], ...rows]);
}

/** With what is not as it was made, or what was mended. */
function stateOf(attachment: ShownAttachment): string {
  const label = labelOf(attachment), resources = attachment.plugins.flatMap((plugin) => plugin.resources);
  const named = resources.filter(({ state }) => label === "mended" ? state === "mended" : isWrong(state));
  return named.length === 0 ? label : `${label}: ${[...new Set(named.map(({ kind }) => kind))].join(", ")}`;
}

function isWrong(state: ShownResource["state"]): boolean {
  return state === "differs" || state === "unknown";
}

/** Attachments with the same text here have the same kind of trouble; "" when there is none. */
function likeness({ network, state, plugins }: ShownAttachment): string {
  const wrong = plugins.flatMap(({ plugin, resources }) =>
    resources.filter((one) => one.state !== "ok").map((one) => `${plugin} ${one.kind} ${one.state}`)
  );
  return state === "ok" && wrong.length === 0 ? "" : JSON.stringify([network, state, ...wrong]);
}

const MAKER = {
  patchbay: "",
  others: " (made by another program)",
  nobody: " (nothing to make)",
  unreadable: " (its ledger cannot be read or trusted; restated from the configuration)",
};

const ELSEWHERE = "the namespace is elsewhere\n" +
  "  the path does not lead to it, but the container lives, or was attached from another network namespace;\n" +
  "  what was made is not looked at, and 'gc --gone' leaves it";

/** Written by a library before 1.2, for a network whose results name no links. */
function unplaced({ network }: Owner): string {
  return "no record says which namespace it is in, so nothing is looked at\n" +
    `  while it runs: patchbay inspect ${network} pid:N, or a path; when it has ended, 'patchbay del' removes what it left`;
}

/** The first of those that are alike stands for all. */
function describe([first, ...alike]: readonly ShownAttachment[], isWhole: boolean): string {
  const { network, ifName, netnsPath, state, plugins, next } = first!;
  const more = alike.length === 0 ? "" : `, and ${alike.length} more like it`;
  const head = `network ${network}, container ${withName(first!)}, ${ifName}${
    netnsPath && ` in ${netnsPath}`
  }${more}`;
  if (state === "gone") {
    return `${head}: the namespace is gone\n  'patchbay del' or 'gc --gone' removes what it left behind\n`;
  }
  if (state === "elsewhere") return `${head}: ${netnsPath === "" ? unplaced(first!) : ELSEWHERE}\n`;
  const lines = plugins.flatMap(({ plugin, madeBy, resources }) => {
    const shown = isWhole ? resources : resources.filter((one) => one.state !== "ok");
    return isWhole || shown.length > 0 ? [`  ${plugin}${MAKER[madeBy]}`, ...shown.flatMap(describeResource)] : [];
  });
  return `${[head, ...lines, ...next === undefined ? [] : [`  ${next}`]].join("\n")}\n`;
}

function describeResource({ what, state, differences, reason }: ShownResource): string[] {
  const below = [...folded(differences)];
  if (reason !== undefined && !isSaid(reason, differences)) below.push(`not mended: ${reason}`);
  return [`    ${state.padEnd(8)} ${what}`, ...below.map((line) => `             ${line}`)];
}

/** Whether a line has the text already, or all of it but what it begins with. */
export function isSaid(text: string, lines: readonly string[]): boolean {
  const main = text.slice(text.indexOf(": ") + 1);
  return lines.some((line) => line.includes(text) || line.endsWith(main));
}

/** Lines about rules that begin alike are one, with their number: a flush takes many, for one reason. */
export function folded(lines: readonly string[]): string[] {
  const beginningOf = (line: string) =>
    /\brule\b/.test(line) ? line.replaceAll("ip6tables", "iptables").split(" ", 2).join(" ") : line;
  return [...Map.groupBy(lines, beginningOf).values()].flatMap((group) =>
    group.length < 3 ? group : [`${group[0]}, and ${group.length - 1} more like it`]
  );
}

/** As a command takes it. */
export function operandsOf({ network, containerId, ifName }: Owner): string {
  return `${network} ${containerId}${ifName === "eth0" ? "" : ` -i ${ifName}`}`;
}
