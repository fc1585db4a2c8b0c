/**
 * Which kernel tables the host's iptables writes. Rules must stand where other tools on the host look for them, and those
 * tools call `iptables`. Found without running the program: that takes longer than everything else in an ADD.
 *
 * `iptables` is a link to one of two programs: xtables-nft-multi writes nf_tables, xtables-legacy-multi (before 1.8:
 * xtables-multi) writes the older kernel tables.
 */
import { forgetAfterCall } from "../../process/calls.ts";
import { EACCES, isErrno } from "../../ffi/errno.ts";
import { fileId, findInPath } from "../../ffi/find-in-path.ts";
import { legacyTableNames } from "../../ffi/xtables/legacy-tables.ts";
import type { Family } from "./rule.ts";

type TablesForm = "nft" | "legacy";

/** What this call has found: a chain asks seven times. */
let found: { readonly path: string | undefined; form?: TablesForm } | undefined;
forgetAfterCall(() => (found = undefined));

/** The path of the host's iptables; undefined when there is none. Looked for once in a call. */
export function hostIptables(): string | undefined {
  found ??= { path: findInPath("iptables") };
  return found.path;
}

/** Whether the host's iptables writes the older kernel tables. */
export function isLegacyHost(): boolean {
  const path = hostIptables();
  return (found!.form ??= tablesForm(path)) === "legacy";
}

/**
 * Which tables the `iptables` at `path` writes. A wrapper script, or a program installed alone, does not tell; then the
 * answer is "legacy" if this namespace has a legacy nat table.
 */
export function tablesForm(path: string | undefined): TablesForm {
  const program = path && fileId(path);
  if (program !== undefined) {
    const directory = path!.slice(0, path!.lastIndexOf("/"));
    if (fileId(`${directory}/xtables-nft-multi`) === program) return "nft";
    if (fileId(`${directory}/xtables-legacy-multi`) === program) return "legacy";
    if (fileId(`${directory}/xtables-multi`) === program) return "legacy";
  }
  return hasLegacyTable(4, "nat") || hasLegacyTable(6, "nat") ? "legacy" : "nft";
}

/** Whether this thread's namespace has the table in the older kernel tables. */
export function hasLegacyTable(family: Family, name: string): boolean {
  try {
    return legacyTableNames(family).includes(name);
  } catch (error) {
    if (isErrno(error, EACCES)) return false;
    throw error;
  }
}
