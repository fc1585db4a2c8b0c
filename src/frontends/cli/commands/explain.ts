/** `patchbay explain`. */
import type { KnownAttachment } from "../../../engine/operator/known-attachment.ts";
import { explanationDocument } from "../../../explain/document.ts";
import { HostWorld } from "../../../explain/host-world.ts";
import {
  asked,
  familyFor,
  type Party,
  partyNamed,
  protocolNamed,
  protocolNumber,
  type Question,
} from "../../../explain/question.ts";
import { type Answered, explainedInFull } from "../../../explain/show.ts";
import { prove } from "../../../explain/live/prove.ts";
import { explain, type Explanation } from "../../../explain/walk/walk.ts";
import { isHandedOver, leaveToCaller } from "../../../process/calls.ts";
import { print, printJson } from "../../../process/output.ts";
import { knownAttachments } from "../../../runtime/records.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { namedBy, shortId, shownName } from "../named-attachments.ts";
import { containerNote, DIGITS_TO_SHOW, runtimeOf, runtimeOptions } from "../network-arguments.ts";

export const explainCommand: Command = {
  summary: "say what stops a packet, whose it is, and what mends it",
  operands: "FROM [TO] [tcp|udp|icmp[/PORT]]",
  operandCount: [1, 3],
  needsRoot: true,
  options: {
    ipv6: { short: "6", help: "ask for IPv6 where both ends have it" },
    live: { help: "send one packet of it, and compare with the kernel's own trace" },
    watch: {
      value: "SECONDS",
      otherwise: "10",
      help: "send nothing: wait so long for a real packet of it (default: 10), and compare",
    },
    json: { help: "print JSON" },
    "cache-dir": runtimeOptions["cache-dir"]!,
  },
  notes: `${containerNote(DIGITS_TO_SHOW)}` +
    'FROM and TO are a container, an address, "outside", "host", or "host:PORT".\n' +
    "Without TO: the container's way out, and each of its published ports from outside.\n",
  exitStatus:
    "0 when it arrives or leaves this host, 1 when something stops it, 2 when that cannot be told, 3 when " +
    "nothing could be looked at.",
  run(given) {
    // Waiting for a packet is not a worker's.
    if (isHandedOver() && (given.has("live") || given.has("watch"))) leaveToCaller("command");
    const attachments = knownAttachments(runtimeOf(given));
    const world = new HostWorld(attachments, labelOf), watchMs = watchMsOf(given);
    try {
      const answers = questionsOf(given, attachments).map((question): Answered => {
        const way = asked(world, question);
        if ("reason" in way) return { question, reason: way.reason };
        const explanation = explain(world, way.origin, way.flow), answered = { question, explanation };
        if (watchMs === undefined && !given.has("live")) return answered;
        const live = { ...way, world, explanation, watchMs };
        return { ...answered, live: prove(live, () => explainedAnew(attachments, question)) };
      });
      if (given.has("json")) printJson(answers.map(explanationDocument));
      else print(answers.map(explainedInFull).join("\n"));
      return Math.max(...answers.map(statusOf));
    } finally {
      world.close();
    }
  },
};

const STATUS = { arrives: 0, leaves: 0, stops: 1, unknown: 2 } as const, NOT_LOOKED_AT = 3;

function statusOf({ explanation, live }: Answered): number {
  if (live?.isRefused) return NOT_LOOKED_AT;
  if (live?.agrees === "contradiction") return STATUS.unknown;
  if (live?.verdict !== undefined) return STATUS[live.verdict];
  return explanation === undefined ? NOT_LOOKED_AT : STATUS[explanation.verdict];
}

const LONGEST_S = 600;

function watchMsOf(given: GivenArguments): number | undefined {
  const seconds = given.value("watch");
  if (seconds === undefined) return undefined;
  if (given.has("live")) throw new UsageError("--live sends, and --watch sends nothing: one of them");
  if (!/^[0-9]+$/.test(seconds) || Number(seconds) === 0 || Number(seconds) > LONGEST_S) {
    throw new UsageError(`--watch takes seconds, from 1 to ${LONGEST_S}: ${JSON.stringify(seconds)}`);
  }
  return Number(seconds) * 1000;
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

function questionsOf(given: GivenArguments, attachments: readonly KnownAttachment[]): Question[] {
  const operands = [...given.operands], last = operands.length > 1 ? protocolNamed(operands.at(-1)!) : undefined;
  if (last !== undefined) operands.pop();
  if (operands.length > 2) throw new UsageError(`${JSON.stringify(operands[2])} is no protocol: tcp, udp/53, icmp`);
  const [from, to] = operands.map((operand) => partyOf(operand, attachments));
  const family = familyFor(from!.party, to?.party ?? from!.party) ?? (given.has("ipv6") ? 6 : 4);
  const port = to?.port ?? last?.port, name = last?.protocol ?? (port === undefined && to ? "icmp" : "tcp");
  const way = { from: from!.party, family, protocol: protocolNumber(name, family) };
  if (to !== undefined) return [{ ...way, to: to.party, port }];
  return [{ ...way, to: { is: "outside" }, port: port ?? (name === "tcp" ? 443 : undefined) }];
}

function partyOf(operand: string, attachments: readonly KnownAttachment[]): { party: Party; port?: number } {
  const named = namedBy(operand, attachments, DIGITS_TO_SHOW)[0];
  if (named !== undefined) return { party: { is: "container", attachment: named, label: labelOf(named) } };
  const party = partyNamed(operand);
  if (party === undefined) {
    throw new Error(`no container ${JSON.stringify(operand)} is known here, and it is no address`);
  }
  return party;
}

function labelOf(attachment: KnownAttachment): string {
  return shownName(attachment) ?? shortId(attachment.containerId);
}
