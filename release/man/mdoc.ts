/** Text as mdoc(7), the language of manual pages: words that it would read otherwise, lines, lists. */

/** In ASCII, so that every formatter reads it. A hyphen stays what was typed: people copy options and paths. */
const escapes: Readonly<Record<string, string>> = {
  "\\": "\\e",
  "-": "\\-",
  "'": "\\(aq",
  "`": "\\(ga",
  "~": "\\(ti",
  "^": "\\(ha",
  "…": "...",
};

/** For a line of text. It may begin with any character. */
export function escaped(text: string): string {
  const plain = [...text].map((character) => escapes[character] ?? character).join("");
  return plain.replace(/^\./, "\\&.");
}

/** Sentences, each on a line of its own, as mdoc wants it. What is in backticks is bold. */
export function prose(text: string): string {
  const sentences = text.replace(/\s+/g, " ").trim().split(/(?<=[.:?!]) (?=[A-Z$'`])/);
  return sentences.map((sentence) => {
    const parts = sentence.split("`");
    return parts.map((part, at) => at % 2 === 0 || at === parts.length - 1 ? escaped(part) : bold(part)).join("");
  }).map((line) => `${line}\n`).join("");
}

const bold = (text: string) => `\\fB${escaped(text)}\\fP`;

/** "directory of results" as "Directory of results." Names, which begin with another character, stay as they are. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.?!]$/.test(text) ? "" : "."}`;
}

/** Indented lines stay as they are, the others flow. Blocks and empty lines separate paragraphs. */
export function paragraphs(text: string): string {
  const blocks = text.split("\n").reduce<{ isIndented: boolean; lines: string[] }[]>((found, line) => {
    const isIndented = line.startsWith(" "), last = found.at(-1);
    if (last !== undefined && last.isIndented === isIndented && line !== "" && last.lines.at(-1) !== "") {
      last.lines.push(line);
    } else {
      found.push({ isIndented, lines: [line] });
    }
    return found;
  }, []);
  const shown = blocks.filter(({ lines }) => lines.some((line) => line !== ""));
  return shown.map(({ isIndented, lines }, at) => {
    if (isIndented) return indented(lines.map((line) => line.trim()));
    return `${at === 0 ? "" : ".Pp\n"}${prose(lines.join(" "))}`;
  }).join("");
}

/** Two columns are a list. */
function indented(lines: readonly string[]): string {
  const columns = lines.map((line) => line.split(/ {2,}/));
  if (columns.some(({ length }) => length !== 2)) return display(lines);
  return list(columns.map(([first, second]) => ({ head: `Ic ${escaped(first!)}`, text: sentence(second!) })));
}

/** Lines that are neither filled nor broken. */
export function display(lines: readonly string[]): string {
  return `.Bd -literal -offset indent\n${lines.map((line) => `${escaped(line)}\n`).join("")}.Ed\n`;
}

export interface Item {
  /** A macro with its arguments, without the dot. */
  head: string;
  text: string;
}

export function list(items: readonly Item[]): string {
  return `.Bl -tag -width Ds\n${items.map(({ head, text }) => `.It ${head}\n${prose(text)}`).join("")}.El\n`;
}

/** Each begins a paragraph, which displays do by themselves. */
export function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").map((part, at) =>
    at === 0 || /^\.(?:Bd|Bl|Pp)/.test(part) ? part : `.Pp\n${part}`
  ).join("");
}

export function section(title: string, body: string): string {
  return body === "" ? "" : `.Sh ${title}\n${body}`;
}

/** The operands of a command, in the words of its help: `list|release [NETWORK]`. Capitals are places. */
export function operandLines(operands: string): string {
  return operands.split(/([[\]|]|\s+)/).filter((part) => part.trim() !== "").map((part) => {
    if (part === "[") return ".Oo\n";
    if (part === "]") return ".Oc\n";
    if (part === "|") return "|\n";
    return `.${/^[A-Z]/.test(part) ? "Ar" : "Cm"} ${escaped(part)}\n`;
  }).join("");
}
