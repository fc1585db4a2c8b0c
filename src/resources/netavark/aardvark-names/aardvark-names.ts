/**
 * A container's names in one network, in the file of aardvark-dns. The first names of a host start it, and it ends with
 * the last.
 */
import { resource, type ResourceKind } from "../../../contract/resource.ts";
import { addNames, hasNames, removeNames } from "./names.ts";
import type { NamesSpec } from "./spec.ts";

export const aardvarkNamesKind: ResourceKind<NamesSpec> = {
  kind: "aardvark-names",
  unmade: undefined,
  apply: (spec) => void addNames(spec),
  verify: (spec) => hasNames(spec) ? [] : [`${textOf(spec)} are missing in ${spec.directory}`],
  remove(spec, _host, isRestated) {
    // Otherwise the names of the ledger have just been removed, and aardvark-dns has reloaded.
    if (!isRestated || hasNames(spec)) removeNames(spec);
  },
  repair: (spec) => void addNames(spec),
  describe: textOf,
};

export const aardvarkNames = resource(aardvarkNamesKind);

function textOf({ networks }: NamesSpec): string {
  return networks.map(({ name, names }) => `names ${names.join(", ")} in ${name}`).join("; ");
}
