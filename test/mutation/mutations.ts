/**
 * Every change of one line that a mistake could be: conditions and their sides, guards and calls left out, returns,
 * constants, order. It reads the sources as `npm run format` leaves them: operators stand between spaces, a statement
 * begins its line.
 */
export interface Mutation {
  /** From 1. */
  line: number;
  from: number;
  to: number;
  text: string;
}

/** What to look for in code, where texts and comments are blank, and what to put there; undefined: nothing. */
interface Rule {
  pattern: RegExp;
  change(match: RegExpExecArray, code: string): string | undefined;
}

const operators: Record<string, string> = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "&&": "||",
  "||": "&&",
  "+": "-",
  "-": "+",
};

const BRACKETS = /\((?:[^()\n]|\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\))*\)/.source;
/** One side of `&&` or `||`. */
const OPERAND = `(?:${BRACKETS}|\\[[^[\\]\\n]*\\]|\\?\\.|&(?!&)|(?! =>? )[^()[\\]&|?:;,\\n])+?`;

const rules: readonly Rule[] = [
  { pattern: / (===|!==|<=?|>=?|&&|\|\||-|\+) /g, change: ([, operator]) => ` ${operators[operator!]} ` },
  // Not behind what is asserted to be there.
  { pattern: /(?<![\w)\]])!(?=[\w(])/g, change: () => "" },
  { pattern: / \? ([^?:;]+) : ([^?:;,)]+)(?=[;,)]|$)/gm, change: ([, one, other]) => ` ? ${other} : ${one}` },
  { pattern: /\breturn [^;]+;$/gm, change: () => "return undefined;" },
  { pattern: /^( *)(?!return\b|throw\b|const\b|let\b|if\b|for\b|super\b)[\w.#!?]+\(.*\);$/gm, change: leftOut },
  { pattern: new RegExp(`^( *)if ${BRACKETS} .*;$`, "gm"), change: leftOut },
  { pattern: new RegExp(`(?<=^ *)if ${BRACKETS} (?=.*;$)`, "gm"), change: () => "" },
  { pattern: new RegExp(`(?<=return |\\(|, | (?:=>?|[?:]) )${OPERAND} (?:&&|\\|\\|) `, "g"), change: () => "" },
  { pattern: new RegExp(` (?:&&|\\|\\|) ${OPERAND}(?= (?:&&|\\|\\||[?:]) |[;,)\\]])`, "g"), change: () => "" },
  { pattern: /(?<![\w.#])\d+(?![\w.])/g, change: ([number]) => String(Number(number) + 1) },
  { pattern: /\b(true|false)\b/g, change: ([value]) => value === "true" ? "false" : "true" },
];

function leftOut([call, indent]: RegExpExecArray): string | undefined {
  const count = (bracket: string) => call.split(bracket).length;
  return count("(") === count(")") && count("{") === count("}") ? `${indent};` : undefined;
}

export function mutationsOf(source: string): Mutation[] {
  const code = withoutDeclarations(withoutTexts(source));
  return rules.flatMap(({ pattern, change }) =>
    [...code.matchAll(pattern)].flatMap((match): Mutation[] => {
      const from = match.index, to = from + match[0].length, text = change(match as RegExpExecArray, code);
      // What the change takes along must be code: a blank may be a text.
      const isCode = source.slice(from, to) === match[0],
        joinsTexts = / [+] /.test(match[0]) && isBesideText(source, from, to);
      if (text === undefined || text === match[0] || joinsTexts || (!isCode && /^ \S/.test(text))) return [];
      return [{ line: code.slice(0, from).split("\n").length, from, to, text }];
    })
  );
}

function isBesideText(source: string, from: number, to: number): boolean {
  return /["'`]$/.test(source.slice(0, from)) || /^\s*["'`]/.test(source.slice(to));
}

/** Blanks in place of comments, texts and regular expressions; what a template computes stays. */
function withoutTexts(source: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  const parts =
    /\/\*[^]*?\*\/|\/\/.*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|(?<=[(,=:] ?)\/(?:\\.|[^/\\\n])+\/\w*/g;
  return source.replace(parts, blank);
}

/** Blanks in place of imports and types, which are gone when the program runs. */
function withoutDeclarations(code: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  return code.replace(/^(export )?interface [^]*?^}$/gm, blank)
    .replace(/^(export )?(declare|import|type) [^]*?;$/gm, blank);
}

export function mutated(source: string, { from, to, text }: Mutation): string {
  return source.slice(0, from) + text + source.slice(to);
}
