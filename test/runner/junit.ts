/** The test cases of a report that `bun test --reporter=junit` wrote. */

export interface TestCase {
  file: string;
  /** With the names of the describes around it, as `bun test -t` matches it. */
  name: string;
  outcome: "passed" | "failed" | "skipped";
  seconds: number;
  /** What a failed one said. */
  failure?: string;
}

export function readJUnit(xml: string): TestCase[] {
  return [...xml.matchAll(/<testcase ([^>]*?)(?:\/>|>(.*?)<\/testcase>)/gs)].map(([, attributes, content = ""]) => {
    const attribute = (name: string) => unescape(attributes!.match(new RegExp(`\\b${name}="([^"]*)"`))![1]!);
    // The describes are named innermost first.
    const describes = attribute("classname").split(" > ").reverse();
    const name = [...describes, attribute("name")].filter(Boolean).join(" ");
    const failure = content.match(/<(?:failure|error)\b[^>]*>([^<]*)/)?.[1];
    const seconds = Number(attribute("time"));
    const found: TestCase = { file: attribute("file"), name, outcome: outcomeOf(content), seconds };
    return failure === undefined ? found : { ...found, failure: unescape(failure) };
  });
}

function outcomeOf(content: string): TestCase["outcome"] {
  if (/<(failure|error)\b/.test(content)) return "failed";
  return /<skipped\b/.test(content) ? "skipped" : "passed";
}

const ENTITIES: Record<string, string> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescape(text: string): string {
  return text.replace(/&(?:#(\d+)|(\w+));/g, (_, code, name) => code ? String.fromCodePoint(code) : ENTITIES[name]!);
}
