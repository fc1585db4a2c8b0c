/**
 * Making again what the kernel lost of an attachment: `patchbay repair`. The ledger says what there was, each kind of
 * resource how it is mended without touching what is right.
 */
import { errorText } from "../cni/error.ts";
import type { Host } from "./host.ts";
import {
  headOf,
  inLedgerScene,
  type InspectedAttachment,
  type InspectedResource,
  look,
  withAttachment,
} from "./inspect.ts";
import { repairing } from "./ledger.ts";
import { type RecordedAttachment, type RecordedResource, resourcesOf } from "./recorded.ts";
import { traced } from "./trace.ts";

export interface RepairedResource extends Omit<InspectedResource, "state"> {
  /** `mended`: it differed as told in `differences`, and does not any more. */
  state: InspectedResource["state"] | "mended";
  /** Why it could not be mended. */
  reason?: string;
}

export type RepairedAttachment = InspectedAttachment<RepairedResource>;

export function repair(attachment: RecordedAttachment, pluginPath: string): RepairedAttachment {
  return withAttachment(attachment, (host) => {
    const plugins: RepairedAttachment["plugins"] = [];
    /** What stands in the way of everything that comes after. */
    let obstacle: string | undefined;
    for (const record of attachment.ledgers) {
      const resources: RepairedResource[] = [];
      const free = repairing(record, () =>
        inLedgerScene("repair", record, () => {
          for (const resource of resourcesOf(record, pluginPath)) {
            const repaired = mend(resource, host, obstacle);
            resources.push(repaired);
            if (resource.kind?.isContainerLink && repaired.state !== "ok" && repaired.state !== "mended") {
              obstacle = "its link in the container is not the one that was made";
            }
          }
        }));
      if (free) plugins.push({ plugin: record.header.plugin, resources });
      else obstacle ??= "somebody is adding or deleting the attachment";
    }
    const isRight = ({ state }: RepairedResource) => state === "ok" || state === "mended";
    const state = plugins.every(({ resources }) => resources.every(isRight)) ? "ok" : "differs";
    return { ...headOf(attachment), state, plugins };
  });
}

function mend(resource: RecordedResource, host: Host, obstacle: string | undefined): RepairedResource {
  const found = look(resource, host);
  const { kind, spec } = resource;
  if (found.state === "ok" || kind === undefined) return found;
  if (obstacle !== undefined) return { ...found, reason: obstacle };
  if (kind.repair === undefined) return { ...found, reason: "only a DEL and another ADD can" };
  try {
    traced("repair", kind, spec, () => kind.repair!(spec, host));
  } catch (error) {
    return { ...found, reason: errorText(error) };
  }
  const after = look(resource, host);
  return after.state === "ok" ? { ...found, state: "mended" } : after;
}
