/** What a configuration of ovs means: with the values of a file for what it leaves out, and with the arguments of the call. */
import { parseCniArgs } from "../../../cni/args.ts";
import { CniError, DECODING_FAILURE, errorText, INVALID_CONFIG, undefinedOnError } from "../../../cni/error.ts";
import { isObject } from "../../../cni/json.ts";
import type { JudgedCall } from "../../../contract/plugin.ts";
import { readConfiguredFile } from "../../../ffi/files.ts";
import { warn } from "../../../process/warn.ts";
import { DEFAULT_SERVER, parseServer } from "../../../interop/ovsdb/server-address.ts";
import type { PortVlans } from "../../../resources/link/ovs-port/spec.ts";
import { trunkRanges } from "../../shared/trunk.ts";
import type { OvsConf } from "./ovs.schema.ts";
import { validateOvsConf } from "./ovs.validate.gen.ts";

/** In this order, after `configuration_path`. */
const FILES = ["/etc/kubernetes/cni/net.d/ovs.d/ovs.conf", "/etc/cni/net.d/ovs.d/ovs.conf"];
/** `vlan` is another matter: 0 is a VLAN, and no missing value. */
const FROM_FILE = [
  "bridge",
  "trunk",
  "vxlanID",
  "mtu",
  "ofport_request",
  "interface_type",
  "socket_file",
  "link_state_check_retries",
  "link_state_check_interval",
] as const;

/** The first of the files that exists gives the keys that the configuration leaves out. Throws when it cannot be read. */
export function withFile(conf: OvsConf): OvsConf {
  for (const path of conf.configuration_path ? [conf.configuration_path, ...FILES] : FILES) {
    const defaults = readSettings(path);
    if (defaults === undefined) continue;
    const filled: Record<string, unknown> = { ...conf };
    for (const key of FROM_FILE) if (isMissing(conf[key])) filled[key] = defaults[key];
    return { ...filled, vlan: conf.vlan ?? defaults.vlan } as OvsConf;
  }
  return conf;
}

/** ovs-cni takes what is a zero value in Go from the file. */
function isMissing(value: unknown): boolean {
  return ["", 0, undefined].includes(value as never) || Array.isArray(value) && value.length === 0;
}

/** For what has been judged, and for DEL, which a file that cannot be read must not stop. */
export function withReadableFile(conf: OvsConf): OvsConf {
  try {
    return withFile(conf);
  } catch (error) {
    warn(`ovs goes on without the file: ${errorText(error)}`);
    return conf;
  }
}

function readSettings(path: string): OvsConf | undefined {
  try {
    const text = readConfiguredFile(path);
    if (text === undefined) return undefined;
    const document: unknown = JSON.parse(text);
    if (!isObject(document)) throw new Error("no object");
    return validateOvsConf({ ...document, name: "file" });
  } catch (error) {
    const reason = `parse ovs config file ${path}: ${errorText(error)}`;
    throw new CniError(DECODING_FAILURE, reason, "it has to be a JSON object with keys of this plugin", {
      cause: error,
    });
  }
}

/** Where the database listens. Throws for an address that is none. */
export function serverOf({ socket_file: text }: OvsConf): string {
  if (!text) return DEFAULT_SERVER;
  if (parseServer(text) !== undefined) return text.startsWith("/") ? `unix:${text}` : text;
  const why = text.startsWith("ssl:") ? "ssl: is not supported" : "it is no address of a database";
  throw new CniError(INVALID_CONFIG, `"socket_file": "${text}": ${why}`, "use unix:PATH or tcp:IP:PORT");
}

/** OVN's own bridge, for its logical ports. */
const OVN_BRIDGE = "br-int";

export function bridgeOf({ bridge }: OvsConf, { ovnPort }: CallArguments): string {
  if (bridge) return bridge;
  if (ovnPort !== undefined) return OVN_BRIDGE;
  const details = '"bridge" is missing: name it, here or in ovs.conf, or give the argument ovnPort';
  throw new CniError(INVALID_CONFIG, "failed to get bridge name", details);
}

/** Without `vlan` and `trunk`: all VLANs, tagged. */
export function vlansOf({ vlan, trunk }: OvsConf): PortVlans {
  if (trunk !== undefined && trunk.length > 0) {
    const trunks = trunkRanges(trunk);
    if (trunks.length === 0) throw new CniError(INVALID_CONFIG, "trunk parameter is misconfigured");
    return { mode: "trunk", trunks };
  }
  return vlan === undefined ? { mode: "trunk" } : { mode: "access", tag: vlan };
}

/** `tag` is the VLAN of the virtual network's tunnel port. */
export function vlansInTunnel(conf: OvsConf, tag: number | undefined): PortVlans {
  const wanted = vlansOf(conf);
  if (tag === undefined) return wanted;
  const isOther = wanted.mode === "access" ? wanted.tag !== tag : wanted.trunks !== undefined;
  if (!isOther) return { mode: "access", tag };
  throw new CniError(
    INVALID_CONFIG,
    `"vxlanID": ${conf.vxlanID} is VLAN ${tag} of the bridge, and ${
      conf.trunk?.length ? '"trunk"' : '"vlan"'
    } says another one`,
    "leave it out",
  );
}

/** ovs-cni looks first and waits then; with one look it has the time that IPAM took. */
const LEAST_PATIENCE_MS = 1000;

/** As ovs-cni waits for the state of the link. */
export function patienceMs(
  { link_state_check_retries: retries, link_state_check_interval: interval }: OvsConf,
): number {
  const wanted = Math.max(retries || 5, 0) * Math.max(interval || 600, 0);
  return Math.min(Math.max(wanted, LEAST_PATIENCE_MS), 600_000);
}

export interface CallArguments {
  mac?: string;
  ovnPort?: string;
  podUid?: string;
}

const KEYS = ["MAC", "mac", "OvnPort", "ovnPort", "OVNPORT", "ovnport", "K8S_POD_UID"] as const;

/** From CNI_ARGS, then `args.cni`, whatever the case of the keys. */
export function argumentsOf({ args }: OvsConf, { cniArgs }: Pick<JudgedCall, "cniArgs">): CallArguments {
  const found = parseCniArgs(cniArgs, KEYS), beside = args?.cni ?? {};
  const argument = (key: string) => {
    const named = Object.entries(found).find(([name, value]) => name.toLowerCase() === key && value !== "")?.[1];
    const other = Object.entries(beside).find(([name, value]) =>
      name.toLowerCase() === key && typeof value === "string"
    );
    return named ?? (other?.[1] as string | undefined) ?? undefined;
  };
  return { mac: argument("mac"), ovnPort: argument("ovnport") || undefined, podUid: found.K8S_POD_UID };
}

/** For DEL, which CNI_ARGS that cannot be read must not stop. Every other verb has judged them before. */
export function readableArguments(conf: OvsConf, call: Pick<JudgedCall, "cniArgs">): CallArguments {
  return undefinedOnError(() => argumentsOf(conf, call)) ?? {};
}
