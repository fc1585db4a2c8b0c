/**
 * The list of resources as ADD would make it, with nothing made: for an attachment without a ledger, or one that others
 * made, with the names and addresses of prevResult; for `plan` with those that ADD would choose now.
 */
import type { Result } from "../cni/result.ts";
import type { PluginConfig, Purpose } from "../contract/plugin.ts";
import type { Resource } from "../contract/resource.ts";
import { lease } from "../resources/delegated/lease.ts";
import { type Call, facts, goesByTheLink, type Tell } from "./attachment.ts";

/** What prevResult tells to a plugin that asks its IPAM plugin for a lease. */
function recalledLease({ cniVersion, ips, routes, dns }: Result): Result {
  return { cniVersion, ips: ips ?? [], routes, dns };
}

/** `foresee` answers what the IPAM plugin of that name would lease; it is only asked for `plan`. */
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
      if (!goesByTheLink(type)) announce();
      return {
        add() {
          if (goesByTheLink(type)) announce();
          return foresee === undefined ? recalledLease(recalled) : foresee(type);
        },
      };
    },
  });
  return list;
}
