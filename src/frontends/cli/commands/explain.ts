/** `patchbay explain`. */
import { gistOf, type KnownAttachment } from "../../../engine/operator/known-attachment.ts";
import { explanationDocument } from "../../../explain/document.ts";
import { HostWorld } from "../../../explain/host-world.ts";
import {
  asked,
  comesFromOutside,
  familyFor,
  isPort,
  nameAndPort,
  type Party,
  partyNamed,
  protocolNamed,
  protocolNumber,
  type Question,
} from "../../../explain/question.ts";
import { type HostFinding, hostFindings } from "../../../explain/host-findings.ts";
import { leaseFindings } from "../../../explain/lease-findings.ts";
import { type EngineChoice, engineChoices } from "../../../runtime/conf/engine-choice.ts";
import { type Answered, explanationsText, overviewText } from "../../../explain/show.ts";
import { usualQuestions } from "../../../explain/usual-questions.ts";
import { prove } from "../../../explain/live/prove.ts";
import { isHandedOver, leaveToCaller } from "../../../process/calls.ts";
import { explain, type Explanation } from "../../../explain/walk/walk.ts";
import { print, printJson } from "../../../process/output.ts";
import { closestName } from "../../../cni/spelling.ts";
import { knownAttachments } from "../../../runtime/records.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { namedBy, shortId, shownName, whyTooShort } from "../named-attachments.ts";
import { containerNote, DIGITS_TO_SHOW, runtimeOf, runtimeOptions } from "../network-arguments.ts";

const STATUS = { arrives: 0, leaves: 0, stops: 1, unknown: 2 } as const, NOT_LOOKED_AT = 3;

export const explainCommand: Command = {
  summary: "say what stops a packet, whose it is, and what mends it",
  operands: "[FROM] [TO] [PROTOCOL]",
  operandCount: [0, 3],
  needsRoot: true,
  options: {
    ipv6: { short: "6", help: "ask for IPv6 where both ends have it" },
    verbose: { short: "v", help: "print every step" },
    all: { help: "ask for all containers, and look at the host; a line for each that differs" },
    live: { help: "send one packet of it, and compare with the kernel's own trace" },
    watch: {
      value: "SECONDS",
      otherwise: "10",
      help: "send nothing: wait so long for a real packet of it (default: 10), and compare",
    },
    json: { help: "print JSON" },
    bundle: {
      value: "FILE",
      isNeverEmpty: true,
      help: "write a report to send, a tar, to this new file; '-' is stdout",
    },
    ...runtimeOptions,
  },
  notes: `${containerNote(DIGITS_TO_SHOW, "FROM and TO are a container's")}` +
    'Or they are an address, "outside", or "host", each also with a port: "host:8080". FROM may say by which link of the\n' +
    'host it comes: "outside@eth1". PROTOCOL is tcp, udp or icmp, also with a port: tcp/443.\n' +
    "Without TO: the container's way out, its name servers, and each of its published ports from outside.\n",
  exitStatus:
    "0 when it arrives or leaves this host, 1 when something stops it, 2 when that cannot be told, 3 when " +
    "nothing could be looked at.",
  examples: [
    { args: "web", what: "its way out, its names, and its published ports" },
    { args: "web 198.51.100.9 tcp/443", what: "there, and the answer back" },
    { args: "outside host:8080", what: "a published port, from outside" },
    { args: "--all", what: "a line for each way that something stops, for cron" },
  ],
  failureStatus: NOT_LOOKED_AT,
  run(given) {
    const bundle = given.value("bundle"), report = bundle === undefined ? undefined : loadReport();
    report?.refuseBundle(bundle!);
    const real = realPacket(given);
    const attachments = knownAttachments(runtimeOf(given)), isAll = given.has("all");
    const world = new HostWorld(attachments, labelOf);
    try {
      let outside: (4 | 6)[] | undefined;
      const usual = (one: KnownAttachment) => {
        outside ??= ([4, 6] as const).filter((family) => comesFromOutside(world, family));
        return usualQuestions(one, labelOf(one), outside);
      };
      const questions = isAll ? allQuestions(given, attachments, usual) : questionsOf(given, attachments, usual);
      const answers = questions.map((question): Answered => {
        const way = asked(world, question);
        if ("reason" in way) return { question, reason: way.reason };
        const explanation = explain(world, way.origin, way.flow);
        if (real === undefined) return { question, explanation };
        const live = prove({ ...way, ...real, world, explanation }, () => explainedAnew(attachments, question));
        return { question, explanation, live };
      });
      const engines = isAll ? engineChoices() : [];
      const findings = isAll ? findingsOf(world, engines, () => knownAttachments(runtimeOf(given))) : [];
      const ways = () => answers.map(explanationDocument);
      const document = () => isAll ? { host: findings, engines, ways: ways() } : ways();
      const text = (isVerbose: boolean) =>
        isAll ? overviewText(answers, findings, engines.flatMap(choiceNote)) : explanationsText(answers, isVerbose);
      if (bundle !== "-") {
        if (given.has("json")) printJson(document());
        else print(text(given.has("verbose")));
      }
      report?.writeBundle(bundle!, given, world, attachments, { text: text(true), document: document() });
      return isAll && findings.length > 0 ? 1 : worst(answers);
    } finally {
      world.close();
    }
  },
};

const loadReport = () => require("../report.ts") as typeof import("../report.ts");

type Usual = (attachment: KnownAttachment) => Question[];

function allQuestions(given: GivenArguments, attachments: readonly KnownAttachment[], usual: Usual): Question[] {
  if (given.operands.length > 0) throw new UsageError("--all asks for every container, and takes no operands");
  return attachments.flatMap(usual);
}

function findingsOf(
  world: HostWorld,
  engines: readonly EngineChoice[],
  recordedNow: () => readonly KnownAttachment[],
): HostFinding[] {
  const without = engines.flatMap(({ engine, problem }): HostFinding[] =>
    problem === undefined
      ? []
      : [{ code: "engine-without-network", text: `${engine} has no network for pods: ${problem}` }]
  );
  return [
    ...hostFindings(world.host, world.index, labelOf),
    ...leaseFindings(world.index, recordedNow, labelOf),
    ...without,
  ];
}

/** Only where several files are there can a person be wrong about it. */
function choiceNote({ engine, network, path, passedOver }: EngineChoice): string[] {
  if (network === undefined || passedOver.length === 0) return [];
  return [`${engine} gives pods ${network} (${path}), and not ${passedOver.join(", ")}`];
}

/** What stops counts more than what could not be looked at. */
function worst(answers: readonly Answered[]): number {
  const all = new Set(answers.map(statusOf));
  return [1, NOT_LOOKED_AT, 2].find((status) => all.has(status)) ?? 0;
}

function statusOf({ explanation, live }: Answered): number {
  if (live?.isRefused) return NOT_LOOKED_AT;
  if (live?.agrees === "contradiction") return STATUS.unknown;
  if (live?.verdict !== undefined) return STATUS[live.verdict];
  return explanation === undefined ? NOT_LOOKED_AT : STATUS[explanation.verdict];
}

const LONGEST_S = 600;

/** Undefined when no real packet is asked for. */
function realPacket(given: GivenArguments): { watchMs?: number } | undefined {
  const isLive = given.has("live"), seconds = given.value("watch");
  if (!isLive && seconds === undefined) return undefined;
  if (isLive && seconds !== undefined) throw new UsageError("--live sends, and --watch sends nothing: one of them");
  if (given.has("all") || given.operands.length < 2) throw new UsageError("a real packet needs FROM and TO");
  // Waiting for one is not a worker's.
  if (isHandedOver()) leaveToCaller("command");
  if (seconds === undefined) return {};
  if (/^[1-9][0-9]{0,2}$/.test(seconds) && Number(seconds) <= LONGEST_S) return { watchMs: Number(seconds) * 1000 };
  throw new UsageError(`--watch takes seconds, from 1 to ${LONGEST_S}: ${JSON.stringify(seconds)}`);
}

function explainedAnew(attachments: readonly KnownAttachment[], question: Question): Explanation | undefined {
  const world = new HostWorld(attachments, labelOf);
  try {
    const way = asked(world, question);
    return "reason" in way ? undefined : explain(world, way.origin, way.flow);
  } finally {
    world.close();
  }
}

function questionsOf(given: GivenArguments, attachments: readonly KnownAttachment[], usual: Usual): Question[] {
  if (given.operands.length === 0) throw new UsageError("name a container, or say --all");
  const operands = [...given.operands], last = operands.length > 1 ? protocolNamed(operands.at(-1)!) : undefined;
  if (last !== undefined) operands.pop();
  if (operands.length > 2) {
    const meant = /^[0-9]+$/.test(operands[2]!) ? `; did you mean tcp/${operands[2]}?` : "";
    throw new UsageError(`${JSON.stringify(operands[2])} is no protocol: tcp/443, udp/53, icmp${meant}`);
  }
  const [from, to] = operands.map((operand) => partyOf(operand, attachments));
  const family = given.has("ipv6") ? 6 : familyFor(from!.party, to?.party ?? from!.party);
  const port = to?.port ?? last?.port, name = last?.protocol ?? (port === undefined && to ? "icmp" : "tcp");
  const { party } = from!;
  if (to !== undefined && "by" in to.party && to.party.by !== undefined) {
    throw new UsageError(`${JSON.stringify(operands[1])}: only FROM comes by a link; the kernel chooses the way out`);
  }
  if (to === undefined && last === undefined) {
    if (party.is === "container") {
      const questions = usual(party.attachment);
      if (questions.length > 0) return questions;
      throw new Error(
        `the network of ${party.label} gives it no way out, no name server and no published port: say TO`,
      );
    }
    throw new UsageError("name who is to get the packet, too: explain outside host:8080");
  }
  return [{ from: party, to: to?.party ?? { is: "outside" }, family, protocol: protocolNumber(name, family), port }];
}

function partyOf(operand: string, attachments: readonly KnownAttachment[]): { party: Party; port?: number } {
  const whole = containerOf(operand, attachments);
  if (whole !== undefined) return { party: whole };
  const { name, port } = nameAndPort(operand);
  if (port !== undefined && !isPort(port)) {
    throw new UsageError(`${JSON.stringify(operand)}: a port is a number from 1 to 65535`);
  }
  const party = partyNamed(name) ?? containerOf(name, attachments);
  if (party !== undefined) return { party, port };
  const known = attachments.flatMap((one) => [one.containerId, labelOf(one)]);
  const meant = closestName(name, ["outside", "host", ...known]);
  const next = whyTooShort(name, attachments, DIGITS_TO_SHOW) ?? (meant && `did you mean ${meant}?`);
  const hint = next === undefined ? "" : `; ${next}`;
  throw new Error(`no container ${JSON.stringify(name)} is known here, and it is no address${hint}`);
}

function containerOf(name: string, attachments: readonly KnownAttachment[]): Party | undefined {
  const all = namedBy(name, attachments, DIGITS_TO_SHOW);
  // containerd attaches the loopback of a pod, too.
  const attachment = all.find((each) => gistOf(each).addresses.length > 0) ?? all[0];
  return attachment && { is: "container", attachment, label: labelOf(attachment) };
}

/** A path under /proc is nothing to know a container by. */
function labelOf(attachment: KnownAttachment): string {
  const name = shownName(attachment);
  return name === undefined || name.startsWith("/") ? shortId(attachment.containerId) : name;
}
