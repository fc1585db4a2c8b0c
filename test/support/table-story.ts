/** What kinds of resources make in the kernel: steps, each with what it changes there. */
import type { Feature } from "./kernel-features.ts";
import type { Machine } from "./machine.ts";
import { linksOf, listLinks, listTraffic } from "./link-listing.ts";
import { drive, type Step } from "./resources.ts";
import { changes, type Ruleset, rulesetOfIptables, rulesetOfNft } from "./ruleset.ts";

type Spec = Record<string, unknown>;
/** With the name of a specification; the containers that are valid; or a script. "forget": removed without a ledger. */
type Told =
  | ["judge" | "apply" | "undo" | "verify" | "repair" | "remove" | "forget", string]
  | ["sweep", ...string[]]
  | { sh: string };

export interface TableStory {
  title: string;
  /** Undefined: each specification says it. */
  kind?: string;
  /** What all specifications have. */
  base?: Spec;
  specs: Record<string, Spec>;
  steps: Told[];
  list: "nft" | "iptables" | "links" | "traffic";
  /** Steps with these words need to know the owner of a rule, which the older tables of iptables have no room for. */
  byOwner?: RegExp;
  needs?: Feature;
  /** Before the first step. */
  prepare?: string;
}

const listings = {
  nft: `nft list ruleset; grep -H 1 /proc/sys/net/ipv4/conf/*/route_localnet || true
    for LINK in $(ls /proc/sys/net/ipv4/conf); do
      tc filter show dev $LINK ingress 2> /dev/null | grep -q handle.0x7f && echo /proc/$LINK/loopback_filter: || true
    done`,
  iptables: "iptables-save; ip6tables-save",
  links: listLinks,
  traffic: listTraffic,
};

/** The specifications, and a paragraph for each step: how it ended, and what has changed in the tables. */
export async function tell(machine: Machine, story: TableStory, env?: Record<string, string>): Promise<string> {
  const { title, kind, base, specs, list, prepare = "", steps } = story,
    look: Step = { verb: "sh", kind: listings[list] };
  const stepOf = (told: Told): Step => {
    if ("sh" in told) return { verb: "sh", kind: told.sh };
    const [verb, ...words] = told;
    if (verb === "sweep") return { verb, kind: kind!, network: "net", valid: words };
    const { kind: own = kind, ...spec }: Spec & { kind?: string } = { ...base, ...specs[words[0]!] };
    if (verb !== "forget") return { verb, kind: own!, spec };
    return { verb: "remove", kind: own!, spec: { ...spec, addresses: [] }, isRestated: true };
  };
  const all = [{ verb: "sh", kind: prepare } as const, look, ...steps.flatMap((told) => [stepOf(told), look])];
  const [, first, ...outcomes] = await drive(machine, all, env);
  const lines = Object.entries(specs).map(([name, spec]) => `${name}: ${JSON.stringify({ ...base, ...spec })}`);
  let before = rulesetOf(list, first);
  steps.forEach((told, index) => {
    const after = rulesetOf(list, outcomes[2 * index + 1]);
    const what = "sh" in told ? told.sh : `${told.join(" ")}: ${endOf(outcomes[2 * index])}`;
    lines.push("", what, ...changes(before, after));
    before = after;
  });
  return [title, ...lines].join("\n");
}

function endOf(outcome: unknown): string {
  if (typeof outcome === "object" && !Array.isArray(outcome)) {
    // MAC addresses that no test has chosen differ.
    return `makes ${JSON.stringify(outcome).replace(/(?!02:00:00)(?:[0-9a-f]{2}:){5}[0-9a-f]{2}/g, "…")}`;
  }
  if (!Array.isArray(outcome)) return String(outcome);
  return outcome.length === 0 ? "as it is to be" : outcome.map((each) => `\n  ! ${each}`).join("");
}

function rulesetOf(list: TableStory["list"], listing: unknown): Ruleset {
  const text = String(listing);
  if (list === "iptables") return rulesetOfIptables(text);
  if (list === "links" || list === "traffic") return linksOf(text);
  const lines = text.split("\n"),
    linksWith = (pattern: RegExp) => lines.flatMap((line) => pattern.exec(line)?.[1] ?? []);
  return new Map([
    ...rulesetOfNft(text.replace(/^\/proc.*\n/gm, "")),
    ["route_localnet", linksWith(/conf\/(.*)\/route_localnet:/)],
    ["filter for 127.0.0.0/8", linksWith(/\/proc\/(.*)\/loopback_filter:/)],
  ]);
}
