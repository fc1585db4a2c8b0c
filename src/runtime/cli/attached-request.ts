/** The operands of the commands on an attachment that is there. */
import type { KnownAttachment } from "../../engine/operator/known-attachment.ts";
import { type AttachmentKey, readCache } from "../cache.ts";
import type { AttachmentRequest } from "../plugin-call.ts";
import type { Command, Given } from "./command.ts";
import { attachmentArguments, requestOf, runtimeOf } from "./network-arguments.ts";

/** What `attachedRequest` reads. */
export const attachedArguments = {
  ...attachmentArguments,
  operands: "NETWORK CONTAINER",
  notes: `CONTAINER is a network namespace, its name, or the container's ID.\n${attachmentArguments.notes}`,
} satisfies Partial<Command>;

export interface AttachedRequest {
  request: AttachmentRequest;
  /** The error, when no record names the attachment. Then `request` is that of the attachment which `add` would make. */
  unknown?: string;
}

/** The attachment of the operands NETWORK and CONTAINER. */
export function attachedRequest(given: Given): AttachedRequest {
  const request = requestOf(given), runtime = runtimeOf(given), [network, text] = given.operands;
  const key: AttachmentKey = { ...request, network: network! };
  // Most often; then nothing is searched among many attachments.
  if (readCache(runtime.cacheDirectory, key).state === "present") return { request };
  const { isNamed, knownAttachments, notAttached } = require(
    "./named-attachments.ts",
  ) as typeof import("./named-attachments.ts");
  const isWanted = (one: KnownAttachment) =>
    given.has("container-id") ? one.containerId === request.containerId : isNamed(one, text!);
  const all = knownAttachments(runtime);
  const found = all.filter((one) => one.network === network && one.ifName === request.ifName && isWanted(one));
  const [first, second] = found;
  if (first === undefined) return { request, unknown: notAttached(text!, network!, all) };
  if (second !== undefined) {
    const ids = found.map(({ containerId }) => containerId).join(" and ");
    throw new Error(`"${text}" is a name of the containers ${ids}; choose one with --container-id`);
  }
  const { containerId, netnsPath } = first;
  return { request: given.has("container-id") ? request : { ...request, containerId, netnsPath } };
}
