/** For whoever takes ranges away from which ADD leases: whether there are leases, while no ADD is under way. */
import { endEarlierBoot, existingBlocks, settleAll } from "./blocks.ts";
import { leasedAddresses } from "./go-directory.ts";
import { exclusively, inStore, type StoreOptions } from "./store.ts";
import { removeEmptyFiles } from "./take-over.ts";

/**
 * Runs `work` with all addresses that are leased, or reserved by hand, while no process of this host leases or releases one.
 * What a range was written down in is written without it before: each ADD that read it earlier is over by now, and each
 * later one reads it anew (`PassingSet`). So an address that is not leased here will not be. ADD and DEL hold the lock for a
 * millisecond; throws StillLocked when one does not end within `patienceMs`.
 *
 * Makes the store if there is none. What the last boot and processes that died have left is removed first.
 */
export function leasedExclusively<Value>(
  options: StoreOptions,
  work: (leased: readonly Uint8Array[]) => Value,
  patienceMs?: number,
): Value {
  return inStore({ ...options, patienceMs }, undefined, (store) =>
    exclusively(store, () => {
      endEarlierBoot(store);
      removeEmptyFiles(store);
      settleAll(store, existingBlocks(store));
      return work(leasedAddresses(store.directory));
    }));
}
