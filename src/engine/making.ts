/** ADD: tells a plugin's story and makes every resource. On failure nothing is left. */
import { CniError, errorText, TRY_AGAIN_LATER } from "../cni/error.ts";
import type { Result } from "../cni/result.ts";
import type { Attachment, PluginConfig } from "../contract/plugin.ts";
import type { Resource } from "../contract/resource.ts";
import { traced } from "../contract/trace.ts";
import { isIncompleteUndo } from "../contract/undo.ts";
import { callerId } from "../process/calls.ts";
import { ownSight } from "../ffi/netns-in-sight.ts";
import { withOwnPatience } from "../process/patience.ts";
import { warn } from "../process/warn.ts";
import { lease } from "../resources/delegated/lease.ts";
import { type DecodedCall, facts, isReleasedThroughLink, type Tell } from "./attachment.ts";
import { explained } from "./earlier-link.ts";
import { answerOf } from "./ledger/confirmation.ts";
import { type OpenLedger, openLedger } from "./ledger/open-ledger.ts";
import { StoryOrder } from "./story-order.ts";

export function make<Config extends PluginConfig>(call: DecodedCall<Config>, tell: Tell<Config>): Result {
  const making = new Making(call);
  try {
    const result = tell(attachmentOf(call, making));
    making.finish(result);
    return result;
  } catch (error) {
    withOwnPatience(() => making.undo());
    throw error;
  }
}

function attachmentOf<Config extends PluginConfig>(call: DecodedCall<Config>, making: Making): Attachment<Config> {
  return {
    ...facts(call),
    get prevResult() {
      return call.prevResult();
    },
    purpose: "make",
    mayHave: (option) => option,
    configured: (read) => read(),
    inAdd: (work) => work(),
    examine: (work) => work(),
    choose: (pick) => pick(),
    apply<Made>(resource: Resource<Made>): Made {
      const [announced] = making.announce([resource]);
      return making.apply(announced!) as Made;
    },
    applyAll(resources) {
      for (const announced of making.announce(resources)) making.apply(announced);
    },
    ipam(mayBeEmpty) {
      const type = call.conf.ipam?.type;
      if (!type) return undefined;
      if (isReleasedThroughLink(type, call)) return { add: () => this.apply(lease({ type, mayBeEmpty })) };
      const [announced] = making.announce([lease({ type, mayBeEmpty })]);
      return { add: () => making.apply(announced!) as Result };
    },
  };
}

/** A resource that is recorded in the ledger. */
interface Announced {
  readonly resource: Resource<unknown>;
  isMade: boolean;
  /** What `apply` returned. */
  made: unknown;
}

class Making {
  private readonly announced: Announced[] = [];
  private readonly order = new StoryOrder();
  private ledger: OpenLedger | undefined;
  private isIncomplete = false;
  private isLinkLeft = false;

  constructor(private readonly call: DecodedCall<PluginConfig>) {}

  /** Writes the resources to the ledger. They are made afterwards. */
  announce(resources: readonly Resource<unknown>[]): Announced[] {
    if (resources.length === 0) return [];
    const { plugin, invocation, conf, host } = this.call;
    for (const resource of resources) {
      this.order.next(resource.kind);
      this.requireRoom(resource);
    }
    const { containerId, ifName, netnsPath, cniArgs, stdin } = invocation;
    this.ledger ??= openLedger({
      network: conf.name,
      containerId,
      ifName,
      plugin,
      netnsPath,
      netns: host.container?.cookie,
      hostNetns: host.cookie,
      sight: ownSight(),
      cniArgs,
      caller: callerId(),
      stdin,
    });
    this.ledger.intend(resources);
    const added = resources.map((resource) => ({ resource, isMade: false, made: undefined }));
    this.announced.push(...added);
    return added;
  }

  private requireRoom({ kind, spec }: Resource<unknown>): void {
    try {
      kind.requireRoom?.(spec, this.call.host);
    } catch (error) {
      throw explained(error, kind, this.call.invocation.ifName, this.call.prevResult);
    }
  }

  apply(announced: Announced): unknown {
    const { resource } = announced, { kind, spec } = resource;
    try {
      announced.made = traced("apply", kind, spec, () => kind.apply(spec, this.call.host));
      announced.isMade = true;
      return announced.made;
    } catch (error) {
      if (!isIncompleteUndo(error)) throw error;
      this.leaveToDel(resource, error.undoError);
      throw error.cause;
    }
  }

  /** ADD succeeded. Throws when a DEL removed the ledger meanwhile: then everything made must be undone. */
  finish(result: Result): void {
    const isRecorded = this.ledger?.finish(answerOf(result, this.call.invocation.ifName)) ?? true;
    if (!isRecorded) throw new CniError(TRY_AGAIN_LATER, "the attachment was deleted while it was being added");
  }

  /** ADD failed: undoes what was made, in reverse. What cannot be undone remains in the ledger for DEL. */
  undo(): void {
    const { host } = this.call;
    for (const { resource, made, isMade } of this.announced.reverse()) {
      if (!isMade) continue;
      const { kind, spec } = resource;
      // Its addresses stay taken while the link is there; DEL gives them back.
      if (kind.isLease && this.isLinkLeft) continue;
      try {
        traced("undo", kind, spec, () => kind.undo ? kind.undo(spec, made, host) : kind.remove(spec, host));
      } catch (error) {
        this.leaveToDel(resource, error);
      }
    }
    if (this.isIncomplete) this.ledger?.keep();
    else this.ledger?.abandon();
  }

  private leaveToDel({ kind, spec }: Resource<unknown>, reason: unknown): void {
    this.isIncomplete = true;
    if (kind.isContainerLink) this.isLinkLeft = true;
    warn(`ADD failed and could not undo ${kind.describe(spec)}: ${errorText(reason)}; DEL will try again`);
  }
}
