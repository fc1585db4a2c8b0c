/** A report for somebody who does not see this host: one tar, bounded, without what looks secret. */
import { errorText } from "../../cni/error.ts";
import { utf8 } from "../../ffi/libc.ts";
import { printable } from "../../ffi/terminal.ts";
import { redactedFile, redactedText } from "./redaction.ts";
import { memberName, type TarMember, tarOf } from "./tar.ts";

/** Its name in the report, with directories; the ending says what it is (redaction.ts). */
export type ReportFile = readonly [name: string, text: () => string];

const README = `
What looks secret says "(removed)". Names of containers, networks, links and files,
and addresses are in here: look through it before you give it away.

explanation  what was asked, and the answer
host         this host: links, addresses, routes of all tables, routing rules,
             neighbours, what bridges know, qdiscs and filters of tc (what they look for
             is not decoded), listening sockets, sysctls, and rules and
             sets of nf_tables and iptables in the words of nft, with … for what is not
             decoded, and 500 elements of each set at most
containers   the same of the containers that packets came to
inspect      what was made for attachments, and what is there now
plan         what "add" would make for each network
configurations  networks' files, without comments; names.json has all names there
ledgers      what was recorded of each attachment (docs/ledger.md)
results      the cache of results, with what is in base64 there decoded
trace        the end of the file that $PATCHBAY_TRACE names

In .jsonl files each line is a document; links have the numbers of links.jsonl.
Whatever is longer than 1 MiB, or 5000 lines, is cut, and says so at its end.
`;

const MOST_BYTES = 1024 * 1024, MOST_IN_ALL = 16 * MOST_BYTES, MOST_FILES = 2000;

/** `known`: long words that are no secrets. */
export function reportTar(
  files: readonly ReportFile[],
  when: Date,
  versions: readonly string[],
  known: readonly string[],
): Uint8Array {
  const taken = new Set<string>(), members: TarMember[] = [];
  let room = MOST_IN_ALL;
  const readme = memberName("report/README", taken);
  for (const [name, text] of files) {
    if (room <= 0 || members.length === MOST_FILES) break;
    const bytes = bounded(utf8(redactedFile(name, read(text), known)), Math.min(MOST_BYTES, room));
    room -= bytes.length;
    const shown = name.split("/").map((part) => redactedText(part, known));
    members.push({ name: memberName(["report", ...shown].join("/"), taken), bytes });
  }
  const out = files.length - members.length,
    left = out === 0 ? "" : `\nIt is long enough: ${out} files are left out.\n`;
  const head = [`A report of "patchbay explain", ${when.toISOString()}`, ...versions].join("\n");
  const first = { name: readme, bytes: utf8(printable(`${head}\n${README}${left}`)) };
  return tarOf([first, ...members], Math.floor(when.getTime() / 1000));
}

/** What cannot be read is something that a reader wants to know. */
function read(text: () => string): string {
  try {
    return text();
  } catch (error) {
    return `not read: ${errorText(error)}\n`;
  }
}

/** Cut at the end of a line where there is one. */
function bounded(bytes: Uint8Array, most: number): Uint8Array {
  if (bytes.length <= most) return bytes;
  const end = bytes.lastIndexOf(0x0a, most - 1) + 1 || most;
  return Buffer.concat([bytes.subarray(0, end), utf8(`\n(cut: ${bytes.length - end} bytes more)\n`)]);
}
