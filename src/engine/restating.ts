/**
 * Collects the resources that ADD would make, and makes none. For an attachment without a ledger, or one that others
 * made, names and addresses come from prevResult; for `plan` they are the ones that ADD would choose now.
 */
import type { Result } from "../cni/result.ts";
import type { PluginConfig, Purpose } from "../contract/plugin.ts";
import type { Resource } from "../contract/resource.ts";
import { lease } from "../resources/delegated/lease.ts";
import { type Call, facts, isReleasedThroughLink, type Tell } from "./attachment.ts";

/** The lease of the IPAM plugin, taken from prevResult. */
function recalledLease({ cniVersion, ips, routes, dns }: Result): Result {
  return { cniVersion, ips: ips ?? [], routes, dns };
}

/** `foresee` returns what the IPAM plugin of that name would lease; it is only called for `plan`. */
export function restate<Config extends PluginConfig>(
  call: Call<Config>,
  purpose: Exclude<Purpose, "make">,
  tell: Tell<Config>,
  foresee?: (ipamType: string) => Result,
): Resource<unknown>[] {
  const list: Resource<unknown>[] = [];
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
    choose: (pick, recall) => purpose === "plan" ? pick() : recall(recalled),
    apply(resource) {
      list.push(resource);
      return resource.kind.unmade;
    },
    applyAll: (resources) => void list.push(...resources),
    ipam() {
      const type = conf.ipam?.type;
      if (!type) return undefined;
      const announce = () => void list.push(lease({ type }));
      if (!isReleasedThroughLink(type)) announce();
      return {
        add() {
          if (isReleasedThroughLink(type)) announce();
          return foresee === undefined ? recalledLease(recalled) : foresee(type);
        },
      };
    },
  });
  return list;
}
