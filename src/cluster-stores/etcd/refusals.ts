/** What etcd answers in the place of what was asked for, as sentences that say what to do. */
import type { EtcdConf } from "../../cluster/configuration.ts";
import { StoreSilent } from "../../cluster/effects.ts";
import { undefinedOnError } from "../../cni/error.ts";
import { valueAt } from "../../cni/json.ts";
import type { HttpAnswer } from "../http.ts";

/** Nothing was done, and whichever endpoint is asked says the same until a person changes something. */
export class EtcdRefusal extends StoreSilent {}

/** This endpoint cannot say; another may. Unless nobody got the request, what was asked for may have happened. */
export class EndpointTrouble extends Error {
  constructor(message: string, readonly isUnsent = false) {
    super(message);
  }
}

/** The token is none any more, or was none. Nothing was done. */
export class TokenTrouble extends Error {}

/** What was asked for is older than what etcd keeps. */
export class Compacted extends Error {}

// google.golang.org/grpc/codes
const UNKNOWN = 2, INVALID_ARGUMENT = 3, NOT_FOUND = 5, PERMISSION_DENIED = 7, FAILED_PRECONDITION = 9;
const OUT_OF_RANGE = 11, UNIMPLEMENTED = 12, UNAUTHENTICATED = 16;
/** What is asked for is wrong, whenever and whichever member is asked. */
const FINAL = [INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION, UNIMPLEMENTED];

/** For each answer but 200: `message` is etcd's. */
export function etcdTrouble({ status, text }: HttpAnswer, endpoint: string, conf: EtcdConf): Error {
  const { message, code } = errorIn(text), said = message === "" ? `HTTP status ${status}` : message;
  // Plain text, by server/embed/serve.go of etcd.
  if (text.startsWith("CommonName of client")) {
    return new EtcdRefusal(
      `${endpoint}: etcd with users takes no certificate with a CommonName through its gateway: make a certificate for ` +
        `${conf.certFile} without one (subject "/", the node's name as subjectAltName); the user's name and password say who it is`,
    );
  }
  if (status === 404) {
    const needed = "etcd 3.4 or newer is needed, with its gateway (--enable-grpc-gateway)";
    return new EndpointTrouble(`${endpoint}: there is no /v3/ at what answers: ${needed}`, true);
  }
  return errorOf(code, said, endpoint, conf) ?? new EndpointTrouble(`${endpoint}: etcd cannot answer now: ${said}`);
}

function errorOf(code: number, said: string, endpoint: string, conf: EtcdConf): Error | undefined {
  if (isAboutToken(code, said)) {
    return conf.user === undefined
      ? new EtcdRefusal(`${endpoint}: etcd asks who this is: configure user and passwordFile`)
      : new TokenTrouble(`${endpoint}: ${said}`);
  }
  if (said.includes("invalid user ID or password")) {
    return new EtcdRefusal(
      `${endpoint}: etcd knows no user "${conf.user}" with the password in ${conf.passwordFile}: correct the file, or ` +
        `etcdctl user passwd ${conf.user}`,
    );
  }
  if (code === PERMISSION_DENIED || said.includes("permission denied")) {
    const who = conf.user === undefined ? "this host" : `user "${conf.user}"`;
    return new EtcdRefusal(
      `${endpoint}: ${who} may not read and write below ${conf.prefix}: ` +
        `etcdctl role grant-permission ROLE --prefix=true readwrite ${conf.prefix}, and etcdctl user grant-role ${
          conf.user ?? "USER"
        } ROLE`,
    );
  }
  if (said.includes("space exceeded")) {
    return new EtcdRefusal(
      `${endpoint}: etcd's database is full and takes no writes: etcdctl compact, etcdctl defrag, then etcdctl alarm disarm`,
    );
  }
  if (code === OUT_OF_RANGE) return new Compacted(`${endpoint}: ${said}`);
  return FINAL.includes(code) ? new EtcdRefusal(`${endpoint}: etcd refuses: ${said}`) : undefined;
}

/** "Revision of auth store is old": the roles have changed since. */
function isAboutToken(code: number, said: string): boolean {
  return code === UNAUTHENTICATED ||
    ["user name is empty", "invalid auth token", "revision of auth store is old"].some((each) => said.includes(each));
}

/** 2 for what is no error of etcd's. */
function errorIn(text: string): { message: string; code: number } {
  const value = undefinedOnError(() => JSON.parse(text) as unknown);
  if (value === undefined) return { message: text.slice(0, 200).trim(), code: UNKNOWN };
  const message = valueAt(value, "message"), code = valueAt(value, "code");
  return { message: typeof message === "string" ? message : "", code: typeof code === "number" ? code : UNKNOWN };
}

/** A watch's: it comes as text, within an answer of status 200. */
export function cancellation(reason: string, endpoint: string, conf: EtcdConf): Error {
  const said = reason.replace(/^rpc error: code = \w+ desc = /, "");
  return errorOf(UNKNOWN, said, endpoint, conf) ??
    new EndpointTrouble(`${endpoint}: etcd has ended the watch: ${said}`);
}
