/** What `patchbay explain --json` prints: a list of explanations; with `--all`, an overview. */
import { z } from "zod";
import { type Code, codes } from "./codes.ts";

const codeNames = Object.keys(codes) as [Code, ...Code[]];
const directions = ["going", "answer"] as const;

const remedy = z.union([
  z.strictObject({
    run: z.string().describe("Commands for a shell, joined by semicolons."),
    because: z.string().optional().describe("What they do."),
  }),
  z.strictObject({ advice: z.string().describe("What to do where no command is enough.") }),
]);

const rule = z.strictObject({
  family: z.enum(["ip", "ip6", "inet", "bridge", "netdev", "arp"]).describe("The family of the table."),
  table: z.string().describe("The table's name."),
  chain: z.string().describe("The chain's name."),
  handle: z.string().optional().describe("The rule's handle; absent when the chain's policy decided."),
});

const cause = z.strictObject({
  code: z.enum(codeNames).describe("What stops the packet, or leaves it open: docs/explain.md lists the codes."),
  where: z.string().describe("The namespace: `this host`, or a container."),
  what: z.string().describe("The link, hook or port."),
  text: z.string().describe("The fact as it was read."),
  owner: z.string().optional().describe("Who wrote the rule."),
  rule: rule.optional().describe("The rule or policy that decided."),
  mend: z.array(remedy).describe("What mends it, the best first."),
});

const step = z.strictObject({
  direction: z.enum(directions).describe("On the way there, or back."),
  what: z.string().describe("The link, hook, route or port."),
  text: z.string().describe("What happens to the packet there."),
  state: z.enum(["ok", "stop", "unknown", "note"]).describe("Whether it goes on."),
});

const sight = z.strictObject({
  direction: z.enum(directions).describe("The packet, or the answer to it."),
  where: z.string().describe("The namespace: `this host`, or a container."),
  hook: z.string().describe("The hook of netfilter."),
  priority: z.int().describe("The chain's priority."),
  verdict: z.enum(["accept", "drop", "queue", "unknown"]).describe("What the chain did with it."),
  rule: rule.optional().describe("The rule or policy that decided; absent where a chain of ours saw it pass."),
  input: z.string().optional().describe("The link by which it came in."),
  output: z.string().optional().describe("The link by which it leaves."),
});

const live = z.strictObject({
  sent: z.string().describe("What was sent, or waited for."),
  seen: z.array(sight).describe("What the kernel's trace has of it, in the order of its way."),
  agrees: z.enum(["yes", "contradiction", "decides", "open"]).describe(
    "yes: it fares as the walk says; contradiction: a defect; decides what the walk left open; open: nothing seen decides.",
  ),
  text: z.string().describe("What became of it."),
  verdict: z.enum(["arrives", "leaves", "stops", "unknown"]).optional().describe("Where it decides."),
  kernel: z.string().optional().describe("The kernel's release, for the report of a contradiction."),
});

export const explanation = z.strictObject({
  from: z.string().describe("The sender, as it was named."),
  to: z.string().describe("The receiver, as it was named."),
  protocol: z.string().describe("`icmp`, `tcp/443`."),
  verdict: z.enum(["arrives", "leaves", "stops", "unknown"]).describe(
    "arrives: at a program of this host, and the answer back; leaves: this host; stops; unknown.",
  ),
  text: z.string().describe("What people are told first."),
  cause: cause.optional().describe("What stops it, or leaves it open."),
  ways: z.strictObject({
    all: z.int().min(0).describe("How many ways the kernel may choose."),
    stopped: z.int().min(0).describe("How many stop."),
  }).describe("Where the kernel chooses."),
  live: live.optional().describe("What was seen of a real packet, with `--live` or `--watch`."),
  steps: z.array(step).describe("The way that is told, from its beginning."),
});

export const explanations = z.array(explanation);

const hostFinding = z.strictObject({
  code: z.enum(codeNames).describe("docs/explain.md lists the codes."),
  text: z.string().describe("The fact as it was read."),
});

const engine = z.strictObject({
  engine: z.string().describe("The engine that gives every pod one network."),
  directory: z.string().describe("Where it looks for networks."),
  network: z.string().optional().describe("The one that it takes."),
  path: z.string().optional().describe("Its file."),
  problem: z.string().optional().describe("Why it has none."),
  passedOver: z.array(z.string()).describe("Files of networks that pods do not get."),
});

export const overview = z.strictObject({
  host: z.array(hostFinding).describe("What concerns the whole host."),
  engines: z.array(engine).describe("Which network each engine takes for its pods."),
  ways: explanations.describe("Each container's way out, names, and published ports."),
});

export type ExplanationDocument = z.infer<typeof explanation>;
