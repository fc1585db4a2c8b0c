/** The attachment of `owner` as engines cache it, and as it is known from the cache and the ledgers. */
import {
  type CachedAttachment,
  type KnownAttachment,
  listAttachments,
} from "../../src/engine/operator/known-attachment.ts";
import { NETNS, owner, prevResult } from "./engine-bench.ts";

/** With a chain of these plugins, each with what `conf` says; by default, with the result `prevResult`. */
export function cachedWith(
  types: readonly string[],
  conf: Record<string, unknown> = { prevResult },
  more: Partial<CachedAttachment> = {},
): CachedAttachment {
  const document = { cniVersion: "1.1.0", name: owner.network, ...conf };
  return {
    ...owner,
    netnsPath: NETNS,
    cniArgs: "A=b",
    plugins: types.map((type) => ({ type, document: { ...document, type } })),
    ...more,
  };
}

/** The only attachment that there is. */
export function onlyKnown(cached?: CachedAttachment): KnownAttachment {
  return listAttachments(cached === undefined ? [] : [cached])[0]!;
}
