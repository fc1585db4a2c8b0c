/**
 * What the last word of a command line may become, for the scripts of `patchbay completion`: commands, options and their
 * values, networks, containers, attachments and leases. Nothing is compared with the kernel.
 */
import { gistOf, type KnownAttachment } from "../../engine/operator/known-attachment.ts";
import { undefinedOnError } from "../../cni/error.ts";
import { namesIn } from "../../ffi/files.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { listNetworkFiles } from "../../runtime/conf/directory.ts";
import { awaitsValue, type Command, type GivenArguments, type Option, parseArguments } from "./command.ts";
import { heldLeases, networksWithLeases } from "./held-leases.ts";
import { shortId, shownName } from "./named-attachments.ts";
import { knownAttachments } from "../../runtime/records.ts";
import { configDirectoryOf, runtimeOf } from "./network-arguments.ts";
import { NETNS_DIRECTORY } from "../../runtime/paths.ts";

export interface Candidate {
  word: string;
  /** One line for people. */
  what: string;
}

export interface Commands {
  commands: Record<string, () => Command>;
  aliases: Record<string, string>;
}

/** `files`: the word may also be the path of a file, which the shell knows. */
export interface Completion {
  candidates: Candidate[];
  files: boolean;
}

/** Candidates in order of preference: later groups count where the earlier have none that begins as the word does. */
type Groups = Candidate[][];

const FILES: Groups & { files?: true } = Object.assign([], { files: true } as const);

export function completionOf(commands: Commands, typed: readonly string[]): Completion {
  const words = glued(typed), begun = words.at(-1) ?? "", piece = typed.at(-1) ?? "";
  const groups: Groups & { files?: true } = groupsFor(commands, words.slice(0, -1), begun);
  const found = groups.map((group) => group.filter(({ word }) => word.startsWith(begun) && !word.includes("\n")))
    .find((group) => group.length > 0) ?? [];
  const known = new Map(found.map((candidate) => [candidate.word, candidate]));
  // bash replaces only what stands behind the last ":" or "=".
  const start = begun.length - (isBreak(piece) ? 0 : piece.length);
  const candidates = [...known.values()].map(({ word, what }) => ({ word: word.slice(start), what }));
  const { compare } = new Intl.Collator("en", { numeric: true });
  return { candidates: candidates.sort((a, b) => compare(a.word, b.word)), files: groups.files === true };
}

const isBreak = (word: string) => /^[:=]+$/.test(word);

/** bash breaks words at ":" and "=". */
function glued(typed: readonly string[]): string[] {
  const words: string[] = [];
  typed.forEach((word, at) => {
    const continues = at > 0 && (isBreak(word) || isBreak(typed[at - 1]!));
    if (continues) words.push(words.pop()! + word);
    else words.push(word);
  });
  return words;
}

function groupsFor({ commands, aliases }: Commands, before: readonly string[], begun: string): Groups {
  const name = before.find((word) => !word.startsWith("-"));
  const all = Object.entries(commands).map(([word, load]) => ({ word, what: load().summary }));
  if (name === undefined) {
    const others = Object.entries(aliases).map(([word, known]) => ({ word, what: commands[known]!().summary }));
    return [[...all, ...others, { word: "help", what: "describe the commands, or one of them" }]];
  }
  if (name === "help") return before.length > 1 ? [] : [all];
  const known = Object.hasOwn(aliases, name) ? aliases[name]! : name;
  if (!Object.hasOwn(commands, known)) return [];
  const command = commands[known]!();
  const rest = before.slice(before.indexOf(name) + 1), awaiting = rest.at(-1) ?? "";
  if (awaitsValue(awaiting, command.options)) {
    return valuesOf(optionIn(awaiting, command), { name, command, given: givenIn(rest.slice(0, -1), command) });
  }
  const given = givenIn(rest, command);
  if (begun.startsWith("-")) return optionsFor(begun, { name, command, given });
  return operandsFor({ name, command, given });
}

interface BegunCommand {
  name: string;
  command: Command;
  given: GivenArguments;
}

function givenIn(words: readonly string[], { options }: Command): GivenArguments {
  try {
    return parseArguments(words, options);
  } catch {
    return parseArguments([], options);
  }
}

function optionIn(word: string, { options }: Command): [name: string, option: Option] {
  const found = Object.entries(options).find(([name, { short }]) => word === `--${name}` || word === `-${short}`);
  return found ?? ["", { help: "" }];
}

function optionsFor(begun: string, place: BegunCommand): Groups {
  const { options } = place.command, [word] = begun.split("=");
  if (!begun.includes("=")) {
    return [Object.entries(options).map(([option, { help }]) => ({ word: `--${option}`, what: help }))];
  }
  const values: Groups & { files?: true } = valuesOf(optionIn(word!, place.command), place);
  const groups = values.map((group) => group.map(({ word: value, what }) => ({ word: `${word}=${value}`, what })));
  return Object.assign(groups, values.files && { files: values.files });
}

function valuesOf([name, { value = "" }]: [string, Option], { command, given }: BegunCommand): Groups {
  if (/^(DIRS?|FILE)$/.test(value)) return FILES;
  if (/^[a-z|]+$/.test(value)) return [wordsOf(value.split("|"))];
  if (value === "CONTAINER") return holdersIn(given);
  const isOfAttachment = value === "CONTAINER/IFNAME" || command.operands.includes("CONTAINER");
  if (!isOfAttachment) return [];
  const attachments = attachmentsIn(given);
  if (value === "CONTAINER/IFNAME") {
    return namesOf(attachments).map((group) =>
      group.map(({ word, what, attachment }) => ({ word: `${word}/${attachment.ifName}`, what }))
    );
  }
  if (name === "ifname") return [attachments.map((one) => ({ word: one.ifName, what: describe(one) }))];
  if (name === "container-id") return [attachments.map((one) => ({ word: one.containerId, what: describe(one) }))];
  return [];
}

function operandsFor(place: BegunCommand): Groups {
  const { name, command, given } = place, words = command.operands.split(" ").filter(Boolean), last = words.at(-1);
  const position = given.operands.length;
  const wanted = (words[position] ?? (last?.includes("…") ? last : undefined))?.replace(/[[\]…]/g, "");
  switch (wanted) {
    case "NETWORK":
      if (name === "ipam") return [wordsOf(given.operands[0] === "show" ? servedPools() : networksWithLeases(given))];
      return [networksFor(place)];
    case "POOL":
      return [wordsOf(servedPools())];
    case "NETNS":
      return Object.assign([netnsNames(), netnsPaths()], { files: true });
    case "CONTAINER":
      return namesOf(attachmentsIn(given));
    case "ADDRESS":
      return given.operands[0] === "release" ? [leasesOf(given, given.operands[1]!)] : [];
    case "DIR":
    case "FILE":
      return FILES;
  }
  return wanted !== undefined && /^[a-z|]+$/.test(wanted) ? [wordsOf(wanted.split("|"))] : [];
}

/** The pools of which this host has blocks, or may get some. */
function servedPools(): string[] {
  const names = undefinedOnError(() => namesIn(stateDirectory())) ?? [];
  return names.flatMap((name) => /^pool~([^~]+)$/.exec(name)?.[1] ?? []).filter((name) => !name.endsWith(".tmp"));
}

function wordsOf(words: readonly string[]): Candidate[] {
  return words.map((word) => ({ word, what: "" }));
}

/** They undo what is recorded of a network, whose file may be gone. */
const ON_NETWORKS_LEFT = ["gc", "network"];

/** Networks that something is attached to, for commands on attachments; otherwise configured networks. */
function networksFor({ name, command, given }: BegunCommand): Candidate[] {
  const configured = listNetworkFiles(configDirectoryOf(given)).flatMap(({ network }) =>
    network === undefined ? [] : [{ word: network.name, what: network.plugins.map(({ type }) => type).join(", ") }]
  );
  const isOnAttachments = command.operands.includes("CONTAINER");
  if (!isOnAttachments && !ON_NETWORKS_LEFT.includes(name)) return configured;
  const described = new Map(configured.map(({ word, what }) => [word, what]));
  const attached = knownAttachments(runtimeOf(given)).map(({ network }) => ({
    word: network,
    what: described.get(network) ?? "not configured",
  }));
  return isOnAttachments ? attached : [...attached, ...configured];
}

function attachmentsIn(given: GivenArguments): KnownAttachment[] {
  const [network] = given.operands;
  return knownAttachments(runtimeOf(given)).filter((one) => network === undefined || one.network === network);
}

/** Containers by their engine's name or the one that `ip netns` has, otherwise by the ID. */
function namesOf(attachments: readonly KnownAttachment[]): (Candidate & { attachment: KnownAttachment })[][] {
  const named = (nameOf: (attachment: KnownAttachment) => string) =>
    attachments.map((attachment) => ({ word: nameOf(attachment), what: describe(attachment), attachment }));
  const shortest = (attachment: KnownAttachment) => {
    const name = shownName(attachment) ?? "";
    return name === "" || name.startsWith("/") ? shortId(attachment.containerId) : name;
  };
  return [named(shortest), named(({ containerId }) => containerId)];
}

function describe(attachment: KnownAttachment): string {
  const { network, containerId, ifName } = attachment;
  return [`${ifName} of ${shortId(containerId)} in ${network}`, ...gistOf(attachment).addresses].join(", ");
}

/** Containers with leases, by their names; those without an attachment are known by their ID alone. */
function holdersIn(given: GivenArguments): Candidate[][] {
  const leases = heldLeases(given, given.operands[1]), attachments = knownAttachments(runtimeOf(given));
  const holders = leases.flatMap(({ containerId, address }) => {
    return containerId === undefined ? [] : [{ word: containerId, what: address }];
  });
  const known = attachments.filter(({ containerId }) => holders.some(({ word }) => word === containerId));
  const others = holders.filter(({ word }) => !known.some(({ containerId }) => containerId === word));
  return [[...namesOf(known)[0]!, ...others], holders];
}

function leasesOf(given: GivenArguments, network: string): Candidate[] {
  return heldLeases(given, network).map(({ address, containerId = "", ifName = "" }) => ({
    word: address,
    what: `${ifName} of ${shortId(containerId)}`,
  }));
}

function netnsNames(): Candidate[] {
  return namesIn(NETNS_DIRECTORY).map((word) => ({ word, what: "network namespace" }));
}

function netnsPaths(): Candidate[] {
  return netnsNames().map(({ word, what }) => ({ word: `${NETNS_DIRECTORY}/${word}`, what }));
}
