/**
 * The protocol of the plugin and the service: one line of JSON each way, with the container's namespace as a
 * descriptor beside the plugin's. Both are the same program, so the form may change with its version.
 */
import { errorText } from "../../cni/error.ts";
import type { Owner } from "../../contract/owner.ts";
import { type LeaseText, requireLease } from "./journal/lease-text.ts";
import { type LeaseText6, requireLease6 } from "./journal/lease-text6.ts";
import { isObject, parseDocument } from "../../cni/json.ts";
import { type LeaseOptions, readLeaseOptions } from "./lease-options.ts";

export const DEFAULT_SOCKET = "/run/cni/dhcp.sock", DEFAULT_DIRECTORY = "/var/lib/cni/dhcp";
/** Podman's units for netavark's DHCP proxy listen here. */
export const PODMANS_SOCKET = "/run/podman/nv-proxy.sock";

/** A plugin and a service of different versions do not understand each other. */
export const PROTOCOL_VERSION = 1;
export const LONGEST_LINE = 64 * 1024;

export interface AcquireRequest {
  do: "acquire";
  owner: Owner;
  netnsPath: string;
  wishes: LeaseOptions;
}

export type ServiceRequest =
  | AcquireRequest
  | { do: "check"; owner: Owner }
  | { do: "release"; owner: Owner }
  /** Leases of a network, whose names (`ownerName`) come after this one: so many as fit into an answer. */
  | { do: "list"; network: string; after: string }
  | { do: "report"; network: string };

export type Answer =
  | { version: number; lease?: LeaseText; lease6?: LeaseText6; report?: NetworkReport; owners?: Owner[] }
  | { version: number; failure: string; hint?: string };

/** How the leases of a network are doing. */
export interface NetworkReport {
  /** Why the last ADD got no lease, when there has been none since. */
  obstacle?: string;
  /** The obstacle counts for so many seconds from now. */
  forgottenInS?: number;
  /** Leases that no server has renewed in time. */
  unanswered: number;
}

/** Throws when the line is no answer. If it has another version, only that is judged. */
export function readAnswer(line: string): Answer {
  const answer: unknown = parseDocument(line, "the answer");
  if (!isObject(answer) || typeof answer.version !== "number") throw new Error("the answer has no version");
  if (answer.version !== PROTOCOL_VERSION) return { version: answer.version, failure: "" };
  const { failure, hint, lease, lease6, report, owners } = answer;
  for (const [key, value] of Object.entries({ failure, hint })) {
    if (value !== undefined && typeof value !== "string") throw new Error(`${key} of the answer is no text`);
  }
  if (lease !== undefined) requireLease(lease);
  if (lease6 !== undefined) requireLease6(lease6);
  if (report !== undefined && !isReport(report)) throw new Error("report of the answer is wrong");
  if (owners !== undefined && !(Array.isArray(owners) && owners.every((one) => wrongOwner(one) === undefined))) {
    throw new Error("owners of the answer are wrong");
  }
  return answer as unknown as Answer;
}

function isReport(value: unknown): boolean {
  if (!isObject(value) || typeof value.unanswered !== "number") return false;
  const { obstacle, forgottenInS } = value;
  return (obstacle === undefined) === (forgottenInS === undefined) &&
    ["string", "undefined"].includes(typeof obstacle) && ["number", "undefined"].includes(typeof forgottenInS);
}

/** The other side did not send a valid request. `hint` says what to do. */
export class InvalidRequest extends Error {
  constructor(text: string, readonly hint?: string) {
    super(text);
  }
}

/** Throws InvalidRequest. */
export function readServiceRequest(line: string): ServiceRequest {
  const document = parseDocument(line, "the request");
  const request: Record<string, unknown> = isObject(document) ? document : {};
  if (request.version !== PROTOCOL_VERSION) {
    throw new InvalidRequest(
      `the plugin speaks version ${request.version}, the service ${PROTOCOL_VERSION}`,
      "restart the service, so that both are of one version",
    );
  }
  const wrong = wrongIn(request);
  if (wrong !== undefined) throw new InvalidRequest(`malformed request: ${wrong}`);
  return request as unknown as ServiceRequest;
}

function wrongIn(request: Record<string, unknown>): string | undefined {
  switch (request.do) {
    case "acquire":
      if (typeof request.netnsPath !== "string") return "netnsPath is missing";
      return wrongOwner(request.owner) ?? wrongOptions(request.wishes);
    case "check":
    case "release":
      return wrongOwner(request.owner);
    case "list":
      return isText(request.network) && typeof request.after === "string" ? undefined : "network or after is missing";
    case "report":
      return isText(request.network) ? undefined : "network is missing";
  }
  return `nobody knows how to do ${JSON.stringify(request.do)}`;
}

function wrongOwner(owner: unknown): string | undefined {
  const parts = isObject(owner) ? [owner.network, owner.containerId, owner.ifName] : [];
  // The three are parts of a file's name.
  const isRight = (part: unknown) => isText(part) && !part.includes("/") && !part.includes("\0");
  return parts.length === 3 && parts.every(isRight) ? undefined : "owner is wrong";
}

function wrongOptions(wishes: unknown): string | undefined {
  try {
    readLeaseOptions(wishes);
    return undefined;
  } catch (error) {
    return errorText(error);
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

export function ownerName({ containerId, network, ifName }: Owner): string {
  return `${containerId}/${network}/${ifName}`;
}

export function failure(text: string, hint?: string): Answer {
  return { version: PROTOCOL_VERSION, failure: text, hint };
}
