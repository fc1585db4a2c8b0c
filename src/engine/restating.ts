/**
 * Collects the resources that ADD would make, and makes none. For an attachment without a ledger, or one that others
 * made, names and addresses come from prevResult; for `plan` they are the ones that ADD would choose now.
 */
import type { Result } from "../cni/result.ts";
import type { PluginConfig, Purpose } from "../contract/plugin.ts";
import type { Resource } from "../contract/resource.ts";
import { lease } from "../resources/delegated/lease.ts";
import { type DecodedCall, facts, isReleasedThroughLink, type Tell } from "./attachment.ts";
import { StoryOrder } from "./story-order.ts";

/** The lease of the IPAM plugin, taken from prevResult. */
function recalledLease({ cniVersion, ips, routes, dns }: Result): Result {
  return { cniVersion, ips: ips ?? [], routes, dns };
}

/** What only `plan` asks. */
export interface Foresight {
  /** What the IPAM plugin of that name would lease. */
  lease(ipamType: string): Result;
  /** What earlier plugins of the chain would make. */
  before: readonly Resource<unknown>[];
  /** Gets what ADD would throw. */
  onRefusal(error: unknown): void;
}

export function restate<Config extends PluginConfig>(
  call: DecodedCall<Config>,
  purpose: Exclude<Purpose, "make">,
  tell: Tell<Config>,
  foresight?: Foresight,
): Resource<unknown>[] {
  const list: Resource<unknown>[] = [], order = new StoryOrder();
  const add = (resource: Resource<unknown>) => {
    order.next(resource.kind);
    list.push(resource);
  };
  const { conf } = call;
  const prevResult = call.prevResult();
  const recalled: Result = prevResult ?? { cniVersion: conf.cniVersion };
  tell({
    ...facts(call),
    prevResult,
    purpose,
    mayHave: (option) => option || purpose === "undo",
    configured: (read, unknown) => purpose === "undo" ? unknown : read(),
    inAdd: () => undefined,
    examine(work) {
      if (foresight === undefined) return undefined;
      try {
        return work();
      } catch (error) {
        foresight.onRefusal(error);
        return undefined;
      }
    },
    plannedBefore: (kind) => foresight?.before.filter((one) => one.kind.kind === kind).map(({ spec }) => spec) ?? [],
    choose: (pick, recall) => purpose === "plan" ? pick() : recall(recalled),
    apply(resource) {
      add(resource);
      // A kind without it makes nothing that has a value.
      return resource.kind.unmade!;
    },
    applyAll: (resources) => resources.forEach(add),
    ipam() {
      const type = conf.ipam?.type;
      if (!type) return undefined;
      const announce = () => add(lease({ type }));
      if (!isReleasedThroughLink(type, call)) announce();
      return {
        add() {
          if (isReleasedThroughLink(type, call)) announce();
          return foresight === undefined ? recalledLease(recalled) : foresight.lease(type);
        },
      };
    },
  });
  return list;
}
