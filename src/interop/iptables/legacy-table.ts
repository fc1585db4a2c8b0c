/**
 * Tables of iptables in the older kernel tables. The kernel only replaces them as a whole, and all writers share a lock
 * for that. So iptables-save reads a table and one iptables-restore writes it, for each address family.
 *
 * Other programs may change the table between the two; processes of ours wait for each other. A change by others makes
 * our iptables-restore fail where it matters, because it makes chains with -N and deletes rules by their text. Then the
 * plan runs again.
 */
import { environmentEntries } from "../../ffi/environment.ts";
import { whileOpen } from "../../ffi/files.ts";
import { findInPath } from "../../ffi/find-in-path.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { lockExclusive } from "../../process/lock.ts";
import { openOwnNetns } from "../../ffi/netns.ts";
import { beforeWaitingFor, patienceLeftMs, waitingFor } from "../../process/patience.ts";
import { describeEnding, hasSucceeded } from "../../ffi/spawn.ts";
import { runTrusted } from "../../process/trusted-executable.ts";
import { hasLegacyTable } from "./which-iptables.ts";
import { parsePrefix } from "../../net/address.ts";
import { type Family, type IptablesRule, type TableName, toolOf } from "./rule.ts";
import type { IptablesTable, PresentRule, TableChange, TablePlan } from "./table.ts";
import { ruleText, wordAfter, wordsOf } from "./text-rule.ts";

const ATTEMPTS = 10;
/** All of them that a verb runs: they wait for one another's lock. */
const TOOLS = "iptables", TOOLS_MS = 120_000;

export function readTable(name: TableName, family: Family): IptablesTable {
  return new LegacyChange(name, family);
}

export function changeTable(name: TableName, family: Family, plan: TablePlan): void {
  beforeWaitingFor("legacy iptables");
  // Rules belong to a network namespace, and so does the lock.
  whileOpen(openOwnNetns(), (lock) => {
    lockExclusive(lock);
    for (let attempt = 1;; attempt++) {
      const change = new LegacyChange(name, family);
      plan(change);
      const lines = change.commands();
      if (lines.length === 0) return;
      try {
        runTool(family, "restore", ["--wait", "--noflush"], [`*${name}`, ...lines, "COMMIT", ""].join("\n"));
        return;
      } catch (error) {
        if (attempt === ATTEMPTS || !change.isOutdated()) throw error;
      }
    }
  });
}

interface FoundInText extends PresentRule {
  /** Everything after `-A CHAIN `. */
  text: string;
}

class LegacyChange implements TableChange {
  private saved: string[] | undefined;
  private readonly changes: string[] = [];
  private readonly deletedRules = new Set<PresentRule>();
  private readonly deletedChains: string[] = [];

  constructor(private readonly name: TableName, readonly family: Family) {}

  hasChain(name: string): boolean {
    return this.lines().some((line) => line.startsWith(`:${name} `));
  }

  rules(chain: string): FoundInText[] {
    return this.allRules().filter((rule) => rule.chain === chain);
  }

  freeRules(chain: string): FoundInText[] {
    return this.rules(chain);
  }

  allRules(): FoundInText[] {
    return this.lines().filter((line) => line.startsWith("-A ")).map((line) => found(line));
  }

  jumps(from: string, to: string): FoundInText[] {
    return this.rules(from).filter(({ leadsTo }) => leadsTo === to);
  }

  createChain(name: string): void {
    this.changes.push(`-N ${name}`);
  }

  append(chain: string, rule: IptablesRule): void {
    this.changes.push(`-A ${chain} ${ruleText(rule)}`);
  }

  insert(chain: string, rule: IptablesRule): void {
    this.changes.push(`-I ${chain} ${ruleText(rule)}`);
  }

  delete(rule: PresentRule): void {
    this.deletedRules.add(rule);
    this.changes.push(`-D ${rule.chain} ${(rule as FoundInText).text}`);
  }

  flush(chain: string): void {
    for (const rule of this.rules(chain)) this.deletedRules.add(rule);
    this.changes.push(`-F ${chain}`);
  }

  deleteChain(name: string): void {
    this.deletedChains.push(name);
  }

  commands(): string[] {
    return [
      ...this.changes,
      ...this.deletedChains.map((name) => `-F ${name}`),
      ...this.deletedChains.filter((name) => !this.isStillUsed(name)).map((name) => `-X ${name}`),
    ];
  }

  isOutdated(): boolean {
    const before = this.lines();
    this.saved = undefined;
    return before.join("\n") !== this.lines().join("\n");
  }

  private lines(): string[] {
    if (this.saved !== undefined) return this.saved;
    if (!hasLegacyTable(this.family, this.name)) return this.saved = [];
    // The packet counts change all the time; leave them out.
    return this.saved = runTool(this.family, "save", ["-t", this.name], "").split("\n")
      .filter((line) => /^[:-]/.test(line)).map((line) => line.replace(/ \[\d+:\d+\]$/, ""));
  }

  private isStillUsed(name: string): boolean {
    const deletions = new Map<string, number>();
    for (const { text } of this.deletedRules as Set<FoundInText>) deletions.set(text, (deletions.get(text) ?? 0) + 1);
    return this.allRules().some(({ leadsTo, chain, text }) => {
      if (leadsTo !== name || this.deletedChains.includes(chain)) return false;
      const count = deletions.get(text) ?? 0;
      deletions.set(text, count - 1);
      return count <= 0;
    });
  }
}

function found(line: string): FoundInText {
  const [, chain, text] = /^-A (\S+) (.*)$/.exec(line)!;
  const words = wordsOf(text!);
  return {
    chain: chain!,
    text: text!,
    leadsTo: wordAfter(words, "-j", "-g"),
    comment: wordAfter(words, "--comment"),
    owner: undefined,
    get source() {
      const prefix = parsePrefix(wordAfter(words, "-s") ?? "");
      return prefix && prefix.bytes.subarray(0, Math.ceil(prefix.bits / 8));
    },
    get destination() {
      const prefix = parsePrefix(wordAfter(words, "-d") ?? "");
      return prefix && prefix.bytes.subarray(0, Math.ceil(prefix.bits / 8));
    },
    get destinationPorts() {
      return wordAfter(words, "--dports")?.split(",").map(Number);
    },
    is: (rule) => ruleText(rule) === text,
    matches: (conditions) =>
      ` ${text} `.includes(` ${ruleText({ ...conditions, target: "RETURN" }).slice(0, -"-j RETURN".length)}`),
  };
}

/** Why iptables-save and iptables-restore cannot be used; undefined when both are there. */
export function whyNoTools(family: Family): string | undefined {
  try {
    for (const what of ["save", "restore"] as const) findTool(family, what);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Prefers the program with "legacy" in its name: `iptables-restore` may write nf_tables by now. */
function findTool(family: Family, what: "save" | "restore"): string {
  const tool = toolOf(family);
  const path = findInPath(`${tool}-legacy-${what}`) ?? findInPath(`${tool}-${what}`);
  if (path === undefined) throw new Error(`${tool}-${what} is not in PATH, and the tables are iptables-legacy's`);
  return path;
}

function runTool(family: Family, what: "save" | "restore", parameters: string[], input: string): string {
  const path = findTool(family, what);
  const environment = environmentEntries();
  const patienceMs = patienceLeftMs(TOOLS, TOOLS_MS),
    program = { path, argv: [path, ...parameters], environment, patienceMs };
  if (patienceMs === 0) throw new Error(`${path}: iptables' programs have taken ${TOOLS_MS / 1000} s already`);
  const { ending, stdout, stderr } = waitingFor(TOOLS, () => runTrusted(program, utf8(input)));
  if (!hasSucceeded(ending)) throw new Error(`${path}: ${describeEnding(ending)}: ${fromUtf8(stderr).trim()}`);
  return fromUtf8(stdout);
}
