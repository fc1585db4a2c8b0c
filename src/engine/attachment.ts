/**
 * One attachment while its plugin tells the story of ADD: making each resource, or only restating the list.
 */
import { CniError, errorText, INTERNAL, TRY_AGAIN_LATER } from "../cni/error.ts";
import type { Result } from "../cni/result.ts";
import { answerOf } from "./ledger/confirmation.ts";
import { delegate } from "./delegation/delegate.ts";
import { delegationKind } from "./delegation/delegation-kind.ts";
import type { Host } from "../contract/host.ts";
import { ipamKind } from "./delegation/lease-kind.ts";
import { type OpenLedger, openLedger } from "./ledger/ledger.ts";
import type { Attachment, PluginConfig } from "../contract/plugin.ts";
import { type Resource } from "../contract/resource.ts";
import { leavesSomething } from "../contract/undo.ts";
import type { Invocation } from "./run.ts";
import { traced } from "../contract/trace.ts";
import { warn } from "../ffi/warn.ts";

type AnyResource = Resource<unknown>;

export interface Call<Config extends PluginConfig> {
  plugin: string;
  conf: Config;
  invocation: Invocation;
  /** Asked only by those who need it: most plugins ignore prevResult on ADD, and then it may be in any shape. */
  prevResult: () => Result | undefined;
  host: Host;
}

/** What the calls have in common, whether they make things or not. */
function facts<Config extends PluginConfig>({ conf, invocation, host }: Call<Config>) {
  return {
    conf,
    network: conf.name,
    containerId: invocation.containerId,
    ifName: invocation.ifName,
    netnsPath: invocation.netnsPath,
    cniArgs: invocation.cniArgs,
    stdin: invocation.stdin,
    host,
  };
}

/**
 * A lease is announced first and so given back last, when nothing has its address any more. Only that of a DHCP server is
 * given back by a packet through the link.
 */
function goesByTheLink(ipamType: string): boolean {
  return ipamType === "dhcp";
}

/** ADD: everything `tell` applies is made, or, when it throws, nothing is. */
export function make<Config extends PluginConfig>(
  call: Call<Config>,
  tell: (at: Attachment<Config>) => Result,
): Result {
  const { plugin, conf, invocation, host } = call;
  const made: { resource: AnyResource; outcome: unknown; begun: boolean }[] = [];
  let ledger: OpenLedger | undefined, left = false;

  function intend(resources: readonly AnyResource[]): void {
    for (const { kind, spec } of resources) kind.requireRoom?.(spec, host);
    ledger ??= openLedger({
      network: conf.name,
      containerId: invocation.containerId,
      ifName: invocation.ifName,
      plugin,
      netnsPath: invocation.netnsPath,
      netns: host.container?.cookie,
      cniArgs: invocation.cniArgs,
      stdin: invocation.stdin,
    });
    ledger.intend(resources);
  }

  function carryOut<Made>(resource: Resource<Made>): Made {
    const { kind, spec } = resource;
    try {
      const outcome = traced("apply", kind, spec, () => kind.apply(spec, host));
      made.push({ resource, outcome, begun: true });
      return outcome;
    } catch (error) {
      if (!leavesSomething(error)) throw error;
      stays(resource, error.leftBy);
      throw error.cause;
    }
  }

  function stays({ kind, spec }: AnyResource, reason: unknown): void {
    left = true;
    warn(`ADD failed and could not undo ${kind.describe(spec)}: ${errorText(reason)}; DEL will try again`);
  }

  function undoAll(): void {
    for (const { resource, outcome, begun } of made.reverse()) {
      if (!begun) continue;
      const { kind, spec } = resource;
      try {
        traced("undo", kind, spec, () => kind.undo ? kind.undo(spec, outcome, host) : kind.remove(spec, host));
      } catch (error) {
        stays(resource, error);
      }
    }
    if (left) ledger?.keep();
    else ledger?.abandon();
  }

  const at: Attachment<Config> = {
    ...facts(call),
    get prevResult() {
      return call.prevResult();
    },
    restating: false,
    removing: false,
    mayHave: (option) => option,
    apply(resource) {
      intend([resource]);
      return carryOut(resource);
    },
    applyAll(resources) {
      if (resources.length > 0) intend(resources);
      for (const each of resources) carryOut(each);
    },
    delegate: (spec) => at.apply({ kind: delegationKind(invocation), spec }),
    choose: (fresh) => fresh(),
    ipam() {
      const type = conf.ipam?.type;
      if (!type) return undefined;
      const lease: Resource = { kind: ipamKind(invocation), spec: { type } };
      const entry = { resource: lease, outcome: undefined, begun: false };
      const announce = () => {
        intend([lease]);
        made.push(entry);
      };
      if (!goesByTheLink(type)) announce();
      return {
        add() {
          if (goesByTheLink(type)) announce();
          const result = traced(
            "apply",
            lease.kind,
            lease.spec,
            () => delegate(type, "ADD", { ...invocation, host }),
          );
          entry.begun = true;
          if (!result?.ips?.length) throw new CniError(INTERNAL, "IPAM plugin returned missing IP config");
          return result;
        },
      };
    },
  };

  try {
    const result = tell(at);
    if (ledger?.finish(answerOf(result, invocation.ifName)) === false) {
      throw new CniError(TRY_AGAIN_LATER, "the attachment was deleted while it was being added");
    }
    return result;
  } catch (error) {
    undoAll();
    throw error;
  }
}

/**
 * The list of resources as ADD would make it, told with the addresses and names of prevResult. With `lease`, which
 * answers what an IPAM plugin would give out, it is the list of an ADD to come.
 */
export function restate<Config extends PluginConfig>(
  call: Call<Config>,
  tell: (at: Attachment<Config>) => Result,
  { removing = false, lease }: { removing?: boolean; lease?: (type: string) => Result } = {},
): AnyResource[] {
  const list: AnyResource[] = [];
  const { conf, invocation } = call;
  const prevResult = call.prevResult();
  const recalled: Result = prevResult ?? { cniVersion: conf.cniVersion };
  tell({
    ...facts(call),
    prevResult,
    restating: true,
    removing,
    mayHave: (option) => option || removing,
    apply(resource) {
      list.push(resource);
      return resource.kind.unmade;
    },
    applyAll: (resources) => void list.push(...resources),
    delegate(spec) {
      list.push({ kind: delegationKind(invocation), spec });
      return recalled;
    },
    choose: (fresh, recall) => lease === undefined ? recall(recalled) ?? "" : fresh(),
    ipam() {
      const type = conf.ipam?.type;
      if (!type) return undefined;
      const announce = () => void list.push({ kind: ipamKind(invocation), spec: { type } });
      if (!goesByTheLink(type)) announce();
      return {
        add() {
          if (goesByTheLink(type)) announce();
          if (lease !== undefined) return lease(type);
          const { cniVersion, ips, routes, dns } = recalled;
          return { cniVersion, ips: ips ?? [], routes, dns };
        },
      };
    },
  });
  return list;
}
