/**
 * What a newer version of this program wrote into a ledger: a kind of resource, or all of an ADD in a newer format. It
 * stays for that version (docs/versions.md).
 */
import { CniError, INTERNAL } from "../../cni/error.ts";
import { VERSION } from "../../process/version.ts";
import { FORMAT, type LedgerAdd, type LedgerRecord } from "./record.ts";

export const isOfNewerFormat = ({ header }: LedgerAdd): boolean => header.patchbay > FORMAT;

/** The last ADD in a newer format: nobody here can say whether a result is its. */
export function newerAdd({ adds }: LedgerRecord): LedgerAdd | undefined {
  return adds.findLast(isOfNewerFormat);
}

export const NEXT_STEP =
  `a newer version than patchbay ${VERSION} made it, and removes it; or remove what it made by hand, and then the ledger`;

/** The error for an entry whose kind is in no table. */
export function unknownKind(path: string, kind: string): CniError {
  const what = kind.startsWith("format ") ? `is in ${kind}` : `holds a resource of unknown kind "${kind}"`;
  return new CniError(INTERNAL, `ledger ${path} ${what}`, NEXT_STEP);
}
