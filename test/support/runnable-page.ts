/**
 * Pages whose files and commands a test runs. A block of `json` is a file, at the path that the lines before it name; `sh`
 * are commands, and `text` is what the ones before it print, line after line. Blanks count as one, and `…` stands for
 * anything.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "./documents.ts";
import type { Machine } from "./machine.ts";

export type Step =
  | { kind: "file"; path: string; text: string }
  | { kind: "commands"; text: string; prints: string[] };

export function stepsOf(path: string, text = readFileSync(join(root, path), "utf8")): Step[] {
  const steps: Step[] = [];
  for (const { 1: before, 2: language, 3: block } of text.matchAll(/((?:^(?!```).*\n)*)^```(\w*)\n([^]*?)^```$/gm)) {
    const last = steps.at(-1),
      file = [...before!.matchAll(/`(\/etc\/(?:cni\/net\.d|patchbay)(?:\/[\w.-]+)+)`/g)].at(-1)?.[1];
    if (language === "json" && file !== undefined) steps.push({ kind: "file", path: file, text: block! });
    else if (language === "sh") steps.push({ kind: "commands", text: block!, prints: [] });
    else if (language === "text" && last?.kind === "commands") last.prints = block!.trim().split("\n");
    else throw new Error(`${path}: nobody runs this block of "${language}":\n${block}`);
  }
  return steps;
}

/** Each block of commands with what it printed, and the exit status of all: one shell runs them. */
export async function runPage(machine: Machine, steps: readonly Step[], folder = "/run") {
  const mark = "§ next block §";
  const script = steps.map((step) =>
    step.kind === "commands"
      ? `echo "${mark}"\n${step.text}`
      : `mkdir -p ${dirname(step.path)}\ncat >${step.path} <<'END OF FILE'\n${step.text}END OF FILE`
  );
  const { code, stdout } = await machine.run(["sh", "-ec", ["exec 2>&1", `cd ${folder}`, ...script].join("\n")]);
  const printed = stdout.split(mark).slice(1);
  const blocks = steps.filter((step) => step.kind === "commands").map((step, at) => ({
    ...step,
    printed: printed[at],
  }));
  return { code, blocks };
}

/** The lines that are not there, in their order. */
export function missingLines(prints: readonly string[], printed: string): string[] {
  let rest = plain(printed);
  return prints.filter((line) => {
    if (line.trim() === "…") return false;
    const found = new RegExp(plain(line).split("…").map(RegExp.escape).join("[^\\n]*?")).exec(rest);
    if (found) rest = rest.slice(found.index + found[0].length);
    return found === null;
  });
}

function plain(text: string): string {
  return text.replace(/[^\S\n]+/g, " ").replace(/^ | $/gm, "");
}
