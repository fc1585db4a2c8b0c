/** The addresses of a pool that the ledgers of this boot know. */
import { field, isObject } from "../../cni/json.ts";
import { undefinedOnError } from "../../cni/error.ts";
import { listAllLedgers } from "../../engine/ledger/ledger.ts";
import type { LedgerAdd } from "../../engine/ledger/record.ts";

export interface AttachedOfPool {
  address: string;
  network: string;
  containerId: string;
}

export function containersOfPool(pool: string): AttachedOfPool[] {
  return listAllLedgers().flatMap(({ adds }) => adds.filter((add) => poolsOf(add).includes(pool)))
    .flatMap(({ answer, header: { network, containerId } }) =>
      // As the answer of an ADD has them, with the length of their prefix.
      (answer?.addresses ?? []).map((prefix) => ({ address: prefix.split("/")[0]!, network, containerId }))
    );
}

export function attachedOfPool(pool: string): string[] {
  return containersOfPool(pool).map(({ address }) => address);
}

function poolsOf({ header }: LedgerAdd): unknown[] {
  const document: unknown = undefinedOnError(() => JSON.parse(header.stdin));
  const ipam = isObject(document) ? field(document, "ipam") : undefined;
  if (!isObject(ipam)) return [];
  const several = field(ipam, "pools");
  return [field(ipam, "pool"), ...Array.isArray(several) ? several : []];
}
