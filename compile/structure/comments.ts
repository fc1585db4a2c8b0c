/** A rule for comments: a sentence begins with its subject, so none begins with a word that stands for an unnamed thing. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The words after which a reader does not know yet what the sentence is about. */
const SUBJECTLESS = /(?:^|[.?!]["'`)]* )(Of|Those|Whoever)\b/;
const COMMENT = /(?:^\s*\*|(?:^|\s)(?<opening>\/\*\*?|\/\/))(?: (?<text>.*))?$/;

export function comments(root: string, paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const findings: string[] = [];
    // What a sentence that goes on in the next line has behind it; empty where a comment begins.
    let before = "", isLineComment = false;
    readFileSync(join(root, path), "utf8").split("\n").forEach((line, at) => {
      const { opening, text = "" } = COMMENT.exec(line)?.groups ?? {};
      const goesOn = opening === undefined || opening === "//" && isLineComment && line.trimStart().startsWith("//");
      const found = SUBJECTLESS.exec(goesOn && before !== "" ? `… ${before} ${text}` : text)?.[1];
      if (found !== undefined) {
        findings.push(`${path}:${at + 1}: a sentence begins with "${found}": name what it is about`);
      }
      before = text.slice(-2);
      isLineComment = opening === "//";
    });
    return findings;
  });
}
