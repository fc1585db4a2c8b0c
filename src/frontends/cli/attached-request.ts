/** The operands of the commands on an attachment that is there. */
import { variable } from "../../ffi/environment.ts";
import { type CacheRecord, readCache } from "../../runtime/cache.ts";
import type { AttachmentRequest } from "../../runtime/plugin-call.ts";
import type { Command, GivenArguments } from "./command.ts";
import {
  ARGUMENTS_NOTE,
  attachmentArguments,
  containerNote,
  DIGITS_TO_REMOVE,
  DIGITS_TO_SHOW,
  requestOf,
  runtimeOf,
} from "./network-arguments.ts";

/** What `attachedRequest` reads. `digits` as in `namedBy`. */
export function attachedArguments(digits: number) {
  return {
    ...attachmentArguments,
    operands: "NETWORK CONTAINER",
    notes: `${containerNote(digits)}${ARGUMENTS_NOTE}`,
  } satisfies Partial<Command>;
}

export interface AttachedRequest {
  request: AttachmentRequest;
  /**
   * Set when no record names the attachment. Then `request` is that of the attachment which `add` would make. `isMisnamed`:
   * another one is probably meant.
   */
  unknown?: { text: string; isMisnamed: boolean };
  /** The operand is the beginning of its container's ID. */
  isBegun?: boolean;
}

/** The attachment of the operands NETWORK and CONTAINER. `isTaken`: it is to go. */
export function attachedRequest(given: GivenArguments, isTaken = false): AttachedRequest {
  const request = requestOf(given), runtime = runtimeOf(given), [network, text] = given.operands;
  const key = { ...request, network: network! };
  const cached = readCache(runtime.cacheDirectory, key);
  // Most often; then nothing is searched among many attachments.
  if (cached.state === "present") return { request: withArguments(request, cached.record) };
  const { namedBy, namedOrPlaced, notAttached } = require(
    "./named-attachments.ts",
  ) as typeof import("./named-attachments.ts");
  const { knownAttachments } = require("../../runtime/records.ts") as typeof import("../../runtime/records.ts");
  const all = knownAttachments(runtime), digits = isTaken ? DIGITS_TO_REMOVE : DIGITS_TO_SHOW;
  const ofNetwork = all.filter((one) => one.network === network && one.ifName === request.ifName);
  const found = given.has("container-id")
    ? ofNetwork.filter(({ containerId }) => containerId === request.containerId)
    : isTaken
    ? namedBy(text!, ofNetwork, digits)
    : namedOrPlaced(text!, ofNetwork, digits);
  const [first, second] = found;
  if (first === undefined) {
    const isExact = given.has("container-id") ? true : undefined;
    const { text: error, meant } = notAttached(text!, network!, all, digits, isExact, interfaceNamed(given));
    const isMisnamed = meant === "another container" || (meant === "another interface" && !isOneMeant(given));
    return { request, unknown: { text: error, isMisnamed } };
  }
  if (second !== undefined) {
    const ids = found.map(({ containerId }) => containerId).join(" and ");
    throw new Error(`"${text}" is a name of the containers ${ids}; choose one with --container-id`);
  }
  const { containerId, netnsPath } = first;
  const meant = given.has("container-id") ? request : { ...request, containerId, netnsPath };
  const recorded = readCache(runtime.cacheDirectory, { ...meant, network: network! });
  return {
    request: recorded.state === "present" ? withArguments(meant, recorded.record) : meant,
    isBegun: containerId !== text && containerId.startsWith(text!),
  };
}

function interfaceNamed(given: GivenArguments): string | undefined {
  return given.value("ifname") || variable("CNI_IFNAME") || undefined;
}

/** Whether the ID or the interface says which attachment is meant. */
function isOneMeant(given: GivenArguments): boolean {
  return given.has("container-id") || interfaceNamed(given) !== undefined;
}

/** Where the environment says none, those of ADD: they are to be the same (CNI spec 1.1.0, "Deriving runtimeConfig"). */
function withArguments(request: AttachmentRequest, { cniArgs, capabilityArgs }: CacheRecord): AttachmentRequest {
  return {
    ...request,
    cniArgs: variable("CNI_ARGS") ? request.cniArgs : cniArgs ?? [],
    capabilityArgs: variable("CAP_ARGS") ? request.capabilityArgs : capabilityArgs ?? {},
  };
}
