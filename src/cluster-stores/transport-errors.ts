/** Why a request has got no answer: the runtime's codes as sentences that say what to do. */
import { errorText } from "../cni/error.ts";
import type { HttpIdentity } from "./credential-files.ts";

/** There is no answer, or none that could be read to its end. */
export class HttpFailure extends Error {
  constructor(message: string, readonly kind: FailureKind) {
    super(message);
  }
}

/**
 * `local`: it is this host's certificates, whichever server is asked. `unsent`: nobody has got the request. `unknown`: it may
 * have been carried out.
 */
export type FailureKind = "local" | "unsent" | "unknown";

export interface FailedRequest {
  /** `https://10.0.0.1:2379` */
  origin: string;
  /** What should answer there: `etcd`. */
  server: string;
  /** Undefined without TLS. */
  identity: HttpIdentity | undefined;
}

const UNTRUSTED = [
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_SIGNATURE_FAILURE",
  "CERT_UNTRUSTED",
];

export function failureOf(error: unknown, { origin, server, identity }: FailedRequest): HttpFailure {
  const code = codeOf(error);
  const failed = (kind: FailureKind, why: string) => new HttpFailure(`${origin}: ${why}`, kind);
  if (UNTRUSTED.includes(code)) {
    return failed("unsent", `its certificate is not signed by ${identity?.caFrom} (${code})`);
  }
  if (code.startsWith("EAI_") || code === "ENOTFOUND") return failed("unsent", `its name has no address (${code})`);
  switch (code) {
    case "ECONNREFUSED":
      return failed("unsent", `nothing listens there (connection refused): start ${server}, or correct the address`);
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return failed("unsent", `there is no way to it (${code}): look at routes and firewalls`);
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return failed(
        "unsent",
        `its certificate is ${another(identity)}: correct the address, or set ${identity?.nameKey}`,
      );
    case "CERT_HAS_EXPIRED":
      return failed("unsent", `its certificate has expired: renew it, unless this host's clock is wrong: ${clock()}`);
    case "CERT_NOT_YET_VALID":
      return failed("unsent", `its certificate is not valid yet: this host's clock says ${clock()}`);
    case "FailedToOpenSocket":
      return isBare(identity)
        ? failed("unsent", "no connection could be opened")
        : failed("local", `no TLS with ${filesOf(identity!)}: they are no PEM, or do not belong together`);
    case "EPROTO":
      return failed("unknown", `TLS failed: ${tlsAdvice(server, identity)}`);
    case "ECONNRESET":
      return failed("unknown", `the connection ended before the answer${resetAdvice(server, identity)}`);
    default:
      return failed("unknown", code === "" ? errorText(error) : `${code}: ${errorText(error)}`);
  }
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}

function another(identity: HttpIdentity | undefined): string {
  return identity?.serverName === undefined ? "for another name" : `not for "${identity.serverName}"`;
}

function isBare(identity: HttpIdentity | undefined): boolean {
  return identity?.ca === undefined && identity?.cert === undefined;
}

function filesOf({ caFrom, certFrom, ca, cert }: HttpIdentity): string {
  return [...ca === undefined ? [] : [caFrom], ...cert === undefined ? [] : [certFrom]].join(" and ");
}

/** The runtime says the same for a server that wants a certificate, refuses this one, and speaks no TLS. */
function tlsAdvice(server: string, identity: HttpIdentity | undefined): string {
  return identity?.cert === undefined
    ? `${server} wants a client's certificate, and none is configured; or no TLS is spoken there`
    : `${server} refuses ${identity.certFrom}: it has expired, or is of an authority that ${server} does not know; or no TLS ` +
      "is spoken there";
}

/** A server that refuses a certificate may close before its reason is read; one with TLS closes on a plain request. */
function resetAdvice(server: string, identity: HttpIdentity | undefined): string {
  if (identity === undefined) return `: ${server} has ended, or speaks TLS there (https)`;
  return identity.cert === undefined
    ? `: ${server} has ended`
    : `: ${server} has ended, or refuses ${identity.certFrom}`;
}

function clock(): string {
  return new Date().toISOString();
}
