/** Which store a host's cluster has, and who the host is in it: /etc/patchbay/cluster.json. */
import { inside, invalid, list, missing } from "../cni/decode.ts";
import { isObject } from "../cni/json.ts";
import { isNodeName } from "./decoding.ts";
import { knownAt, type WrittenValues } from "./written-values.ts";

export const CONFIGURATION_FILE = "/etc/patchbay/cluster.json";
export const ROSTER_DIRECTORY = "/etc/patchbay";

export interface ClusterConf {
  /** Undefined: the host's name. */
  node?: string;
  labels: Readonly<Record<string, string>>;
  store: StoreConf;
}

export type StoreConf =
  | { kind: "roster"; directory: string }
  | ({ kind: "etcd" } & EtcdConf)
  | ({ kind: "kubernetes" } & KubernetesConf);

export interface EtcdConf {
  endpoints: readonly string[];
  /** Before each key; ends with a slash. */
  prefix: string;
  caFile?: string;
  certFile?: string;
  keyFile?: string;
  /** The name that the servers' certificates have, where that is not the endpoint's. */
  serverName?: string;
  user?: string;
  passwordFile?: string;
}

export interface KubernetesConf {
  /** Undefined: the pod's own token. */
  kubeconfig?: string;
  context?: string;
}

/** Without a file, a roster. */
export const BY_HAND: ClusterConf = { labels: {}, store: { kind: "roster", directory: ROSTER_DIRECTORY } };

/** Throws a CniError that names key and value. */
export function clusterConfFrom(value: unknown): ClusterConf {
  const record = knownAt(value, "", ["node", "labels", "store"], "cluster");
  const node = text(record, "", "node"), labels = record["labels"] ?? {};
  if (node !== undefined && !isNodeName(node)) {
    throw invalid("node", `${JSON.stringify(node)} is no node's name: small letters, digits, dots and hyphens`);
  }
  if (!isObject(labels) || Object.values(labels).some((label) => typeof label !== "string")) {
    throw invalid("labels", "they are names with texts");
  }
  return { node, labels: labels as Record<string, string>, store: storeFrom(record["store"]) };
}

const STORES = ["roster", "etcd", "kubernetes"] as const;

function storeFrom(value: unknown): StoreConf {
  if (value === undefined) return BY_HAND.store;
  const record = knownAt(value, "store", STORES), kinds = Object.keys(record);
  if (kinds.length !== 1) throw invalid("store", `it is one of ${STORES.join(", ")}`);
  const kind = kinds[0] as typeof STORES[number];
  return readers[kind](record[kind], `store.${kind}`);
}

const readers: Record<typeof STORES[number], (value: unknown, at: string) => StoreConf> = {
  roster(value, at) {
    const record = knownAt(value, at, ["directory"]);
    return { kind: "roster", directory: path(record, at, "directory") ?? ROSTER_DIRECTORY };
  },
  etcd(value, at) {
    const files = ["caFile", "certFile", "keyFile", "passwordFile"] as const, texts = ["serverName", "user"] as const;
    const record = knownAt(value, at, ["endpoints", "prefix", ...files, ...texts]);
    const endpoints = list(record["endpoints"] ?? [], `${at}.endpoints`, endpointFrom);
    if (endpoints.length === 0) throw missing(`${at}.endpoints`);
    const prefix = text(record, at, "prefix") ?? "/patchbay/";
    if (!/^\/([a-z0-9.-]+\/)+$/.test(prefix)) {
      throw invalid(`${at}.prefix`, `${JSON.stringify(prefix)} does not begin and end with a slash`);
    }
    const conf: { kind: "etcd" } & EtcdConf = { kind: "etcd", endpoints, prefix };
    for (const key of files) conf[key] = path(record, at, key);
    for (const key of texts) conf[key] = text(record, at, key);
    requireTogether(conf, at, "certFile", "keyFile");
    requireTogether(conf, at, "user", "passwordFile");
    requireTls(conf, at);
    return conf;
  },
  kubernetes(value, at) {
    const record = knownAt(value, at, ["kubeconfig", "context"]);
    return { kind: "kubernetes", kubeconfig: path(record, at, "kubeconfig"), context: text(record, at, "context") };
  },
};

/** Without TLS only on this host: what a node writes in the clear, anybody on its way may change. */
function endpointFrom(value: unknown, at: string): string {
  const shown = JSON.stringify(value);
  const [, scheme, host] = typeof value === "string"
    ? /^(https?):\/\/(\[[^\]/]+\]|[^:/@]+)(:\d+)?$/.exec(value) ?? []
    : [];
  if (scheme === undefined) throw invalid(at, `${shown} is none of the form https://HOST:PORT`);
  const isLoopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(host!);
  if (scheme === "http" && !isLoopback) throw invalid(at, `${shown} is without TLS: https, or a loopback address`);
  return value as string;
}

/** Certificates that would not be used are a mistake in the endpoint. */
function requireTls(conf: EtcdConf, at: string): void {
  const plain = conf.endpoints.findIndex((endpoint) => endpoint.startsWith("http:"));
  const key = (["caFile", "certFile", "serverName"] as const).find((each) => conf[each] !== undefined);
  if (plain < 0 || key === undefined) return;
  throw invalid(
    `${at}.endpoints[${plain}]`,
    `"${conf.endpoints[plain]}" is without TLS, and ${key} is for TLS: https`,
  );
}

function requireTogether<Key extends string>(conf: Partial<Record<Key, unknown>>, at: string, one: Key, other: Key) {
  if (conf[one] !== undefined && conf[other] === undefined) throw missing(`${at}.${other}`);
  if (conf[other] !== undefined && conf[one] === undefined) throw missing(`${at}.${one}`);
}

function text(record: WrittenValues, at: string, key: string): string | undefined {
  const found = record[key];
  if (found === undefined || (typeof found === "string" && found !== "")) return found;
  throw invalid(inside(at, key), `${JSON.stringify(found)} is no text`);
}

function path(record: WrittenValues, at: string, key: string): string | undefined {
  const found = text(record, at, key);
  if (found !== undefined && !found.startsWith("/")) throw invalid(`${at}.${key}`, `"${found}" is no absolute path`);
  return found;
}
