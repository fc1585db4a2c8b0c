/**
 * Restores the resources of an attachment that the kernel lost: `patchbay repair`. The ledger lists them, and each kind
 * repairs what differs without touching the rest.
 */
import { errorText } from "../../cni/error.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import type { Host } from "../../contract/host.ts";
import { inAttachmentScene, inspectResource, withAttachment } from "./inspect.ts";
import { repairing } from "../ledger/ledger.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { HostView } from "../ledger/whereabouts.ts";
import type { Opened } from "../open-host.ts";
import { isProven, type KnownAttachment, type KnownPart, type KnownResource } from "./known-attachment.ts";
import { traced } from "../../contract/trace.ts";
import type { AttachmentState, Gist, InspectedResource } from "../../contract/summaries.ts";

export interface RepairedResource extends Omit<InspectedResource, "state"> {
  /** `mended`: it differed as `differences` says, and was repaired. */
  state: InspectedResource["state"] | "mended";
  /** Why it could not be repaired. */
  reason?: string;
}

export interface RepairedAttachment extends AttachmentState<RepairedResource>, Gist {
  /** What only a DEL and another ADD make: the container's link, or something that nothing else can. */
  needsAdd: boolean;
  /** The container's link is there, as it was made. */
  hasLink: boolean;
}

/** One `view` serves many attachments. */
export function repair(
  attachment: KnownAttachment,
  pluginPath: string,
  view: HostView = new HostView(),
): RepairedAttachment {
  let needsAdd = false, hasLink = true;
  const repairParts = (opened: Opened, parts: readonly KnownPart[]) => {
    const plugins: RepairedAttachment["plugins"] = [];
    /** Why nothing after this point can be repaired. */
    let obstacle = isProven(attachment, opened) ? undefined : "nothing proves that this namespace is the container's";
    for (const { plugin, madeBy, record, host, resources } of parts) {
      const repaired = new Map<KnownResource, RepairedResource>();
      // What others made has no ledger to lock.
      const isAttached = () =>
        record !== undefined || linkIndex(opened.container!.route, attachment.ifName) !== undefined;
      const free = whileNobodyDeletes(record, () =>
        inAttachmentScene("repair", attachment, plugin, () => {
          for (const resource of afterLink(resources)) {
            const one = mend(resource, host, obstacle, isAttached);
            repaired.set(resource, one);
            if (isRight(one)) continue;
            needsAdd ||= resource.kind?.isContainerLink === true || resource.kind?.repair === undefined;
            if (!resource.kind?.isContainerLink) continue;
            hasLink = false;
            obstacle = "its link in the container is not the one that was made";
          }
        }));
      if (free) plugins.push({ plugin, madeBy, resources: resources.map((resource) => repaired.get(resource)!) });
      else obstacle ??= "somebody is adding or deleting the attachment";
    }
    return plugins;
  };
  const { addresses, ports, ...state } = withAttachment(attachment, pluginPath, view, repairParts, isRight);
  return { ...state, addresses, ports, needsAdd, hasLink };
}

const isRight = ({ state }: RepairedResource) => state === "ok" || state === "mended";

/**
 * What confines the container's link comes before it, and is of no use when the link is not there. What others share stays
 * in front: the link is upon it.
 */
function afterLink(resources: readonly KnownResource[]): KnownResource[] {
  const link = resources.findIndex(({ kind }) => kind?.isContainerLink);
  const isDeferred = ({ kind }: KnownResource, index: number) =>
    index < link && kind?.confines === true && kind.undo === undefined;
  const deferred = resources.filter(isDeferred);
  return resources.flatMap((resource, index) =>
    index === link ? [resource, ...deferred] : isDeferred(resource, index) ? [] : [resource]
  );
}

function whileNobodyDeletes(record: LedgerRecord | undefined, work: () => void): boolean {
  if (record !== undefined) return repairing(record, work);
  work();
  return true;
}

/** `isAttached`: the attachment was not deleted meanwhile. Otherwise nobody would remove what is made here. */
function mend(
  resource: KnownResource,
  host: Host,
  obstacle: string | undefined,
  isAttached: () => boolean,
): RepairedResource {
  const found = inspectResource(resource, host);
  const { kind, spec } = resource;
  if (found.state === "ok" || kind === undefined) return found;
  if (obstacle !== undefined) return { ...found, reason: obstacle };
  if (kind.repair === undefined) return { ...found, reason: "only a DEL and another ADD can" };
  try {
    traced("repair", kind, spec, () => kind.repair!(spec, host));
    if (!isAttached()) {
      kind.remove(spec, host, resource.isRestated);
      return { ...found, reason: "somebody deleted the attachment meanwhile" };
    }
  } catch (error) {
    return { ...found, reason: errorText(error) };
  }
  const after = inspectResource(resource, host);
  if (after.state === "ok") return { ...found, state: "mended" };
  const isOthers = (kind.inTheWay?.(spec, host) ?? []).length > 0;
  return isOthers ? { ...after, reason: "what is in its way is not ours" } : after;
}
