/**
 * Restores the resources of an attachment that the kernel lost: `patchbay repair`. The ledger lists them, and each kind
 * repairs what differs without touching the rest.
 */
import { errorText } from "../../cni/error.ts";
import { linkIndex } from "../../ffi/netlink/route/link.ts";
import type { Host } from "../../contract/host.ts";
import { headOf, inAttachmentScene, inOrderOfChain, inspectResource, withAttachment } from "./inspect.ts";
import { repairing } from "../ledger/ledger.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { HostView } from "../ledger/whereabouts.ts";
import type { KnownAttachment, KnownResource } from "./known-attachment.ts";
import { traced } from "../../contract/trace.ts";
import type { AttachmentState, InspectedResource } from "../../contract/shown.ts";

export interface RepairedResource extends Omit<InspectedResource, "state"> {
  /** `mended`: it differed as `differences` says, and was repaired. */
  state: InspectedResource["state"] | "mended";
  /** Why it could not be repaired. */
  reason?: string;
}

export type RepairedAttachment = AttachmentState<RepairedResource>;

/** One `view` serves many attachments. */
export function repair(
  attachment: KnownAttachment,
  pluginPath: string,
  view: HostView = new HostView(),
): RepairedAttachment {
  return withAttachment(attachment, pluginPath, view, (opened, parts) => {
    const plugins: RepairedAttachment["plugins"] = [];
    /** Why nothing after this point can be repaired. */
    let obstacle: string | undefined;
    for (const { plugin, madeBy, record, host, resources } of parts) {
      const repaired: RepairedResource[] = [];
      // What others made has no ledger to lock.
      const isAttached = () =>
        record !== undefined || linkIndex(opened.container!.route, attachment.ifName) !== undefined;
      const free = whileNobodyDeletes(record, () =>
        inAttachmentScene("repair", attachment, plugin, () => {
          for (const resource of resources) {
            const one = mend(resource, host, obstacle, isAttached);
            repaired.push(one);
            if (resource.kind?.isContainerLink && one.state !== "ok" && one.state !== "mended") {
              obstacle = "its link in the container is not the one that was made";
            }
          }
        }));
      if (free) plugins.push({ plugin, madeBy, resources: repaired });
      else obstacle ??= "somebody is adding or deleting the attachment";
    }
    const isRight = ({ state }: RepairedResource) => state === "ok" || state === "mended";
    const state = plugins.every(({ resources }) => resources.every(isRight)) ? "ok" : "differs";
    return { ...headOf(attachment), state, plugins: inOrderOfChain(plugins, attachment) };
  });
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
  return after.state === "ok" ? { ...found, state: "mended" } : after;
}
