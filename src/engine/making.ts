/** ADD: a plugin's story with every resource made, or, when something fails, with nothing left. */
import { CniError, errorText, TRY_AGAIN_LATER } from "../cni/error.ts";
import type { Result } from "../cni/result.ts";
import type { Attachment, PluginConfig } from "../contract/plugin.ts";
import type { Resource } from "../contract/resource.ts";
import { traced } from "../contract/trace.ts";
import { leavesSomething } from "../contract/undo.ts";
import { warn } from "../ffi/warn.ts";
import { lease } from "../resources/delegated/lease.ts";
import { type Call, facts, goesByTheLink, type Tell } from "./attachment.ts";
import { answerOf } from "./ledger/confirmation.ts";
import { type OpenLedger, openLedger } from "./ledger/open-ledger.ts";

export function make<Config extends PluginConfig>(call: Call<Config>, tell: Tell<Config>): Result {
  const making = new Making(call);
  try {
    const result = tell(attachmentOf(call, making));
    making.finish(result);
    return result;
  } catch (error) {
    making.undo();
    throw error;
  }
}

function attachmentOf<Config extends PluginConfig>(call: Call<Config>, making: Making): Attachment<Config> {
  return {
    ...facts(call),
    get prevResult() {
      return call.prevResult();
    },
    purpose: "make",
    mayHave: (option) => option,
    configured: (read) => read(),
    inAdd: (work) => work(),
    choose: (pick) => pick(),
    apply<Made>(resource: Resource<Made>): Made {
      const [announced] = making.announce([resource]);
      return making.apply(announced!) as Made;
    },
    applyAll(resources) {
      for (const announced of making.announce(resources)) making.apply(announced);
    },
    ipam() {
      const type = call.conf.ipam?.type;
      if (!type) return undefined;
      if (goesByTheLink(type)) return { add: () => this.apply(lease({ type })) };
      const [announced] = making.announce([lease({ type })]);
      return { add: () => making.apply(announced!) as Result };
    },
  };
}

/** A resource that stands in the ledger. */
interface Announced {
  readonly resource: Resource<unknown>;
  isMade: boolean;
  /** What `apply` answered. */
  outcome: unknown;
}

class Making {
  private readonly announced: Announced[] = [];
  private ledger: OpenLedger | undefined;
  private leavesSomething = false;

  constructor(private readonly call: Call<PluginConfig>) {}

  /** Writes the resources to the ledger. They are made after it, in this order or later. */
  announce(resources: readonly Resource<unknown>[]): Announced[] {
    if (resources.length === 0) return [];
    const { plugin, invocation, conf, host } = this.call;
    for (const { kind, spec } of resources) kind.requireRoom?.(spec, host);
    const { containerId, ifName, netnsPath, cniArgs, stdin } = invocation;
    this.ledger ??= openLedger({
      network: conf.name,
      containerId,
      ifName,
      plugin,
      netnsPath,
      netns: host.container?.cookie,
      cniArgs,
      stdin,
    });
    this.ledger.intend(resources);
    const added = resources.map((resource) => ({ resource, isMade: false, outcome: undefined }));
    this.announced.push(...added);
    return added;
  }

  apply(announced: Announced): unknown {
    const { resource } = announced, { kind, spec } = resource;
    try {
      announced.outcome = traced("apply", kind, spec, () => kind.apply(spec, this.call.host));
      announced.isMade = true;
      return announced.outcome;
    } catch (error) {
      if (!leavesSomething(error)) throw error;
      this.leave(resource, error.leftBy);
      throw error.cause;
    }
  }

  /** ADD succeeded. Throws when a DEL took the ledger away meanwhile: then what was made must go. */
  finish(result: Result): void {
    const stands = this.ledger?.finish(answerOf(result, this.call.invocation.ifName)) ?? true;
    if (!stands) throw new CniError(TRY_AGAIN_LATER, "the attachment was deleted while it was being added");
  }

  /** ADD failed: takes back what was made, the last first. What cannot be taken back stays in the ledger for DEL. */
  undo(): void {
    const { host } = this.call;
    for (const { resource, outcome, isMade } of this.announced.reverse()) {
      if (!isMade) continue;
      const { kind, spec } = resource;
      try {
        traced("undo", kind, spec, () => kind.undo ? kind.undo(spec, outcome, host) : kind.remove(spec, host));
      } catch (error) {
        this.leave(resource, error);
      }
    }
    if (this.leavesSomething) this.ledger?.keep();
    else this.ledger?.abandon();
  }

  private leave({ kind, spec }: Resource<unknown>, reason: unknown): void {
    this.leavesSomething = true;
    warn(`ADD failed and could not undo ${kind.describe(spec)}: ${errorText(reason)}; DEL will try again`);
  }
}
