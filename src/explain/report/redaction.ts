/**
 * Takes what may be a secret out of what strangers get. Nobody knows all forms of secrets, so more is taken than has to be:
 * what is under a telling key, and what looks made at random. Pure.
 */
import { parseDocument } from "../../cni/json.ts";
import { fromUtf8 } from "../../ffi/libc.ts";
import { printable } from "../../ffi/terminal.ts";

export const REMOVED = "(removed)";

const TELLING = "pass(?![a-vx-z])|passphrase|passcode|pwd|secret|token|key|cred|auth|private|psk|cookie|bearer|jwt";
const TELLING_KEY = new RegExp(TELLING, "iu");

/** A value ends where the next pair of CNI_ARGS begins, or its line does. A torn document's objects and lists have no end. */
const VALUE = String.raw`(?:[[{][^]*|"(?:[^"\\]|\\.)*"|'[^']*'|(?:(?!;\s{0,9}[\w.-]{1,60}=)[^\n])+)`;

/** Each reads a text in one go, however long it is. */
const FORMS: readonly [form: RegExp, instead: string][] = [
  [/-----BEGIN [^\n]{0,60}-----[^]*?(?:-----END [^\n]{0,60}-----|$)/g, REMOVED],
  [/(:\/\/)[^\s"']{1,300}@/g, `$1${REMOVED}@`],
  [
    new RegExp(String.raw`((?:${TELLING})[\w.-]{0,60}\\{0,99}["']?\s{0,20}[=:>]\s{0,20})${VALUE}`, "giu"),
    `$1${REMOVED}`,
  ],
  [new RegExp(String.raw`((?:${TELLING})[\w.-]{0,60}\\{0,99}["']\s{0,20},)[^\n]+`, "giu"), `$1${REMOVED}`],
  [
    /(?<![\w@-])((?:passw\w{0,9}|passphrase|secret|token|bearer|psk|cookie|credentials?)\s{1,9}(?:is\s{1,9})?)[^\s"']+/giu,
    `$1${REMOVED}`,
  ],
  [new RegExp(String.raw`(-[\w-]{0,40}(?:${TELLING})[\w-]{0,40}\s{1,9})[^\s"']+`, "giu"), `$1${REMOVED}`],
];

const LONG_WORD = /[A-Za-z0-9+/_-]{20,}={0,2}/g;
const PATH = /^\/(?:bin|data|dev|etc|home|lib|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)\//;
/** As plugins of the reference name chains, after a hash. */
const HASHED_CHAIN = /^CNI-(?:[A-Z]+-)?[0-9a-f]{16,24}$/;

/** `known`: long words that are no secrets, such as the IDs of containers. */
export function redactedText(text: string, known: readonly string[] = []): string {
  const without = FORMS.reduce((before, [form, instead]) => before.replace(form, instead), text);
  return without.replace(LONG_WORD, (word) => {
    const rest = known.reduce((left, each) => left.replaceAll(each, ""), word);
    const parts = PATH.test(rest) ? rest.split("/") : [rest];
    return HASHED_CHAIN.test(rest) || !parts.some(isRandom) ? word : REMOVED;
  });
}

/** Base64, hexadecimal digits, or letters and digits as password managers make them. */
function isRandom(word: string): boolean {
  const has = (text: string, ...all: RegExp[]) => all.every((each) => each.test(text));
  if (word.length >= 24 && has(word, /[a-z]/, /[A-Z]/, /[0-9]/)) return true;
  return word.split(/[^A-Za-z0-9]/).some((part) =>
    (part.length >= 20 && has(part, /[A-Za-z]/, /[0-9]/)) || (part.length >= 32 && has(part, /[a-z]/, /[A-Z]/))
  );
}

const DEEPEST = 100;

/** Documents within texts, also in base64 as libcni's cache has them, become parts of the document. */
export function redactedValue(value: unknown, known: readonly string[] = [], depth = 0): unknown {
  if (typeof value === "string") {
    const inner = documentIn(value);
    return inner === undefined ? redactedText(value, known) : redactedValue(inner, known, depth + 1);
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth > DEEPEST) return REMOVED;
  if (Array.isArray(value)) {
    return value.map((part, at) => isKeyed(value[at - 1], part) ? REMOVED : redactedValue(part, known, depth + 1));
  }
  const members = Object.entries(value), names = members.filter(([key]) => /^(?:name|key|k)$/i.test(key));
  const isNamed = names.some(([, name]) => typeof name === "string" && isTelling(name));
  return Object.fromEntries(members.map(([key, part]) => {
    const isSecret = isTelling(key) || (isNamed && /^v(?:al(?:ues?)?)?$/i.test(key));
    const says = part !== null && part !== "" && typeof part !== "boolean";
    return [redactedText(key, known), isSecret && says ? REMOVED : redactedValue(part, known, depth + 1)];
  }));
}

function isTelling(key: string): boolean {
  return TELLING_KEY.test(key.replaceAll(/[\s_.-]/g, ""));
}

/** Pairs as lists, and arguments of programs. */
function isKeyed(before: unknown, value: unknown): boolean {
  return typeof before === "string" && /^[\w.-]+$/.test(before) && isTelling(before) && typeof value !== "object";
}

function documentIn(text: string): object | undefined {
  if (/^\s*[[{]/.test(text)) return parsed(text);
  if (!/^[A-Za-z0-9+/_-]{8,}={0,2}$/.test(text)) return undefined;
  try {
    return parsed(fromUtf8(Uint8Array.fromBase64(text.replaceAll("-", "+").replaceAll("_", "/"))));
  } catch {
    return undefined;
  }
}

function parsed(text: string): object | undefined {
  try {
    const document = parseDocument(text, "");
    return typeof document === "object" && document !== null ? document : undefined;
  } catch {
    return undefined;
  }
}

/** By the ending of its name: a JSON document, one in each line, or other text. What does not parse is a text. */
export function redactedFile(name: string, text: string, known: readonly string[] = []): string {
  const one = (document: string, indent: number) => {
    const value = parsed(document);
    return value === undefined
      ? redactedText(document, known)
      : JSON.stringify(redactedValue(value, known), null, indent);
  };
  if (name.endsWith(".jsonl")) return printable(text.split("\n").map((line) => one(line, 0)).join("\n"));
  return printable(name.endsWith(".json") ? `${one(text, 2)}\n` : redactedText(text, known));
}
