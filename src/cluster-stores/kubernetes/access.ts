/** How the API of Kubernetes is reached: as a pod, or as a kubeconfig says. Reads no file but the kubeconfig. */
import { undefinedOnError } from "../../cni/error.ts";
import { isObject, valueAt } from "../../cni/json.ts";
import type { KubernetesConf } from "../../cluster/configuration.ts";
import { variable } from "../../ffi/environment.ts";
import { readConfiguredFile } from "../../ffi/files.ts";

/** A text, or the file that has it, which may be replaced at any moment. */
export type Material = { text: string } | { file: string };

export interface ApiAccess {
  /** `https://10.96.0.1:443`, without a slash at its end. */
  server: string;
  /** The name in the server's certificate, where that is not the address's. */
  serverName?: string;
  /** Undefined: the runtime's own list of authorities. */
  ca?: Material;
  certificate?: Material;
  key?: Material;
  token?: Material;
  program?: CredentialProgram;
}

/** A program that answers with a credential: client.authentication.k8s.io/v1. */
export interface CredentialProgram {
  path: string;
  args: readonly string[];
  environment: Readonly<Record<string, string>>;
  installHint?: string;
  /** It is told which server the credential is for. */
  wantsCluster: boolean;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws an error that names file and key. */
export function accessOf({ kubeconfig, context }: KubernetesConf): ApiAccess {
  if (kubeconfig === undefined) return accessOfPod();
  const text = readConfiguredFile(kubeconfig);
  if (text === undefined) throw new Error(`${kubeconfig}, which "store.kubernetes.kubeconfig" names, is not there`);
  return accessFrom(kubeconfig, text, context);
}

function accessOfPod(): ApiAccess {
  const host = variable("KUBERNETES_SERVICE_HOST"), port = variable("KUBERNETES_SERVICE_PORT");
  if (host === undefined || port === undefined) {
    throw new Error(
      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, as they are in a pod: elsewhere " +
        'name a kubeconfig in "store.kubernetes.kubeconfig"',
    );
  }
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    ca: { file: `${SERVICE_ACCOUNT}/ca.crt` },
    token: { file: `${SERVICE_ACCOUNT}/token` },
  };
}

type Values = Readonly<Record<string, unknown>>;

/** Relative paths in it are relative to it. Only what the context needs is judged: the rest may be for other programs. */
export function accessFrom(path: string, text: string, context?: string): ApiAccess {
  const directory = path.slice(0, path.lastIndexOf("/"));
  const at = (place: string): Place => ({ path, directory, place });
  const whole = parsed(path, text), chosen = context ?? whole["current-context"];
  if (chosen === undefined || chosen === "") {
    throw new Error(`${path} has no "current-context": name one in "store.kubernetes.context"`);
  }
  const named = entryOf(at("contexts"), whole["contexts"], chosen, "context");
  const cluster = entryOf(at("clusters"), whole["clusters"], named["cluster"], "cluster");
  const user = entryOf(at("users"), whole["users"], named["user"], "user");
  return {
    ...fromCluster(at(`cluster ${JSON.stringify(named["cluster"])}`), cluster),
    ...fromUser(at(`user ${JSON.stringify(named["user"])}`), user),
  };
}

function parsed(path: string, text: string): Values {
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (error) {
    throw new Error(`${path} is no YAML: ${(error as Error).message}`);
  }
  if (!isObject(value) || value["kind"] !== "Config") {
    throw new Error(`${path} is no kubeconfig: it has no "kind: Config"`);
  }
  return value;
}

interface Place {
  path: string;
  directory: string;
  place: string;
}

function entryOf({ path, place }: Place, list: unknown, name: unknown, key: string): Values {
  const value = valueAt(Array.isArray(list) && list.find((each) => valueAt(each, "name") === name), key);
  if (!isObject(value)) throw new Error(`${path}: "${place}" has no ${JSON.stringify(name)}`);
  return value;
}

/** With what each of them means; the keys that mean nothing here are taken as they are. */
const CLUSTER_KEYS = ["server", "tls-server-name", "certificate-authority", "certificate-authority-data"];
const USER_KEYS = [
  ...["client-certificate", "client-certificate-data", "client-key", "client-key-data"],
  ...["token", "tokenFile", "exec"],
];
const WITHOUT_MEANING = ["extensions", "disable-compression"];

/** Why not, where there is more to say than that it is not known. */
const REFUSED: Readonly<Record<string, string>> = {
  "insecure-skip-tls-verify": "without a look at the certificate anybody may be the server: name its authority in " +
    '"certificate-authority"',
  "proxy-url": "the API server is reached without a proxy",
  "auth-provider": 'Kubernetes has "exec" in its place',
  username: 'the API server knows no passwords any more: "client-certificate", "token" or "exec"',
};

function requireKnown(at: Place, value: Values, known: readonly string[]): void {
  for (const key of Object.keys(value)) {
    if ([...known, ...WITHOUT_MEANING].includes(key)) continue;
    if (key === "insecure-skip-tls-verify" && value[key] === false) continue;
    throw refused(at, key, REFUSED[key] ?? "is not known");
  }
}

function refused({ path, place }: Place, key: string, why: string): Error {
  return new Error(`${path}: ${place}: "${key}": ${why}`);
}

function fromCluster(at: Place, value: Values): ApiAccess {
  requireKnown(at, value, CLUSTER_KEYS);
  const server = textOf(at, value, "server") ?? "";
  if (!/^https:\/\/[^/?#@]+(\/[^?#]*)?$/.test(server)) {
    throw refused(
      at,
      "server",
      `${JSON.stringify(server)} is none of the form https://HOST:PORT; TLS is never optional`,
    );
  }
  return {
    server: server.replace(/\/+$/, ""),
    serverName: textOf(at, value, "tls-server-name"),
    ca: materialOf(at, value, "certificate-authority"),
  };
}

function fromUser(at: Place, value: Values): Partial<ApiAccess> {
  requireKnown(at, value, USER_KEYS);
  const certificate = materialOf(at, value, "client-certificate"), key = materialOf(at, value, "client-key");
  if (certificate !== undefined && key === undefined) throw refused(at, "client-key", "the certificate needs it");
  if (key !== undefined && certificate === undefined) throw refused(at, "client-certificate", "the key needs it");
  const token = textOf(at, value, "token"), tokenFile = textOf(at, value, "tokenFile"), exec = value["exec"];
  return {
    certificate,
    key,
    // As kubectl has it: the file is newer.
    token: tokenFile !== undefined
      ? { file: pathFrom(at, tokenFile) }
      : token !== undefined
      ? { text: token }
      : undefined,
    program: exec === undefined ? undefined : programFrom({ ...at, place: `${at.place}: exec` }, exec),
  };
}

function textOf(at: Place, value: Values, key: string): string | undefined {
  const found = value[key];
  if (found === undefined || (typeof found === "string" && found !== "")) return found;
  throw refused(at, key, `${JSON.stringify(found)} is no text`);
}

/** The data counts where there is a file, too, as for kubectl. */
function materialOf(at: Place, value: Values, key: string): Material | undefined {
  const file = textOf(at, value, key), data = textOf(at, value, `${key}-data`);
  if (data === undefined) return file === undefined ? undefined : { file: pathFrom(at, file) };
  const text = undefinedOnError(() => atob(data));
  if (text?.includes("-----BEGIN ")) return { text };
  throw refused(at, `${key}-data`, "is no PEM in base64");
}

function pathFrom({ directory }: Place, path: string): string {
  return path.startsWith("/") ? path : `${directory}/${path}`;
}

const PROGRAM_KEYS = ["apiVersion", "command", "args", "env", "installHint", "interactiveMode", "provideClusterInfo"];

function programFrom(at: Place, value: unknown): CredentialProgram {
  if (!isObject(value)) throw refused(at, "exec", "is no object");
  requireKnown(at, value, PROGRAM_KEYS);
  const version = value["apiVersion"], command = textOf(at, value, "command"), args = value["args"] ?? [];
  if (version !== EXEC_VERSION) throw refused(at, "apiVersion", `${JSON.stringify(version)} is not ${EXEC_VERSION}`);
  if (value["interactiveMode"] === "Always") throw refused(at, "interactiveMode", "nobody is there to be asked");
  if (command === undefined) throw refused(at, "command", "is missing");
  if (!Array.isArray(args) || args.some((each) => typeof each !== "string")) {
    throw refused(at, "args", "are no texts");
  }
  return {
    path: command.includes("/") ? pathFrom(at, command) : command,
    args,
    environment: environmentFrom(at, value["env"] ?? []),
    installHint: textOf(at, value, "installHint"),
    wantsCluster: value["provideClusterInfo"] === true,
  };
}

export const EXEC_VERSION = "client.authentication.k8s.io/v1";

function environmentFrom(at: Place, list: unknown): Record<string, string> {
  const pairs = Array.isArray(list) ? list : [undefined];
  return Object.fromEntries(pairs.map((each) => {
    const name = valueAt(each, "name"), value = valueAt(each, "value");
    if (typeof name !== "string" || typeof value !== "string") {
      throw refused(at, "env", 'is no list of "name" and "value"');
    }
    return [name, value];
  }));
}
