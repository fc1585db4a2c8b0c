/**
 * tuning: sysctls of the container's network namespace, and settings of a link that earlier plugins made.
 *
 * Behaviour follows the reference plugin `plugins/meta/tuning`. Owns in the kernel: nothing; it changes settings and
 * restores them. Owns on disk: one file for each attachment, with the previous settings.
 */
import { parseCniArgs } from "../../../cni/args.ts";
import { CniError, INTERNAL, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { goQuote } from "../../../cni/quote.ts";
import { type Attachment, definePlugin, type JudgedCall } from "../../../contract/plugin.ts";
import { readTextFile } from "../../../ffi/files.ts";
import { getLink } from "../../../ffi/netlink/route/link.ts";
import { parseMac } from "../../../net/mac.ts";
import { type LinkSettings, linkSettings, settingsOf } from "../../../resources/link/link-settings.ts";
import { requireUsableMac } from "../../../resources/link/shared/usable.ts";
import { currentSysctls, sysctls, type SysctlValues } from "../../../resources/kernel/sysctls.ts";
import { validateTuningConf } from "./tuning.validate.gen.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { Result } from "../../../cni/result.ts";
import type { TuningConf } from "./tuning.schema.ts";
import { repeatedKeyIn } from "../../../cni/repeated-key.ts";
import { checkAllowed } from "./allowlist.ts";

const ALLOWLIST = "/etc/cni/tuning/allowlist.conf";
const DATA_DIR = "/run/cni/tuning";
const MAX_U32 = 0xffffffff;

export default definePlugin<TuningConf>({
  name: "tuning",
  validate: validateTuningConf,
  judge(conf, call) {
    const wanted = wantedSettings({ conf, cniArgs: call?.cniArgs ?? "" });
    sysctlValues(conf, call ?? { ifName: "IFNAME", stdin: "{}" });
    checkSettings(wanted);
    // ADD has the kernel's own words.
    if (call === undefined) requireUsableMac(wanted.mac);
  },
  missingPrevResult: "Required prevResult missing",
  add,
  status(conf) {
    try {
      checkAllowlist(configuredSysctls(conf));
    } catch (error) {
      throw new CniError(PLUGIN_NOT_AVAILABLE, (error as Error).message, "", { cause: error });
    }
  },
});

function add(at: Attachment<TuningConf>): Result {
  const { conf, host, ifName } = at;
  // The allowlist applies to ADD only, because it may have changed since.
  at.inAdd(() => checkAllowlist(configuredSysctls(conf)));
  // Without a ledger only the backup file has the previous settings, and it contains no sysctls.
  const values = at.configured(() => sysctlValues(conf, at), {});
  const settings = at.configured(() => wantedSettings(at), {});

  const changes: Resource<unknown>[] = [];
  if (Object.keys(values).length > 0) {
    changes.push(sysctls({ values, before: at.inAdd(() => currentSysctls(values, host)) }));
  }
  if (at.mayHave(Object.keys(settings).length > 0)) {
    const backupFile = `${conf.dataDir || DATA_DIR}/${at.containerId}_${ifName}.json`;
    changes.push(linkSettings({ ifName, wanted: settings, backupFile, ...at.inAdd(() => linkNow(at, settings)) }));
  }
  at.applyAll(changes);
  return withMac(at, settings.mac);
}

/** The sysctls of the configuration, overridden by `args`, with keys as written. */
function configuredSysctls({ sysctl, args }: TuningConf): Record<string, string> {
  return { ...sysctl, ...args?.cni?.sysctl };
}

function sysctlValues(conf: TuningConf, { stdin, ifName }: Pick<JudgedCall, "stdin" | "ifName">): SysctlValues {
  const configured = configuredSysctls(conf);
  const values: SysctlValues = {};
  const repeated = conf.sysctl === undefined ? undefined : repeatedKeyIn("sysctl", stdin);
  if (repeated !== undefined) throw duplicated(repeated);
  for (const key in configured) {
    const path = sysctlPath(key, ifName);
    if (values[path] !== undefined) throw duplicated(key);
    values[path] = configured[key]!;
  }
  return values;
}

/** IFNAME in a key stands for the interface, because names with dots cannot be part of a key. */
function sysctlPath(key: string, ifName: string): string {
  const path = key.replaceAll(".", "/").replace("IFNAME", () => ifName);
  const parts = path.split("/");
  if (parts[0] !== "net" || parts.length < 2 || parts.includes("") || path.includes("\0")) {
    throw new CniError(
      INVALID_CONFIG,
      `invalid net sysctl key: ${goQuote(path)}`,
      `"sysctl" has the key ${goQuote(key)}`,
    );
  }
  return path;
}

function duplicated(key: string): CniError {
  return new CniError(INVALID_CONFIG, "duplicated sysctl keys are not allowed", `${goQuote(key)} is there twice`);
}

function checkAllowlist(configured: Record<string, string>): void {
  const keys = Object.keys(configured);
  const text = keys.length === 0 ? undefined : readTextFile(ALLOWLIST);
  if (text !== undefined) checkAllowed(keys, text);
}

/** For the MAC the last source wins: the configuration, CNI_ARGS, the capability, `args`. */
function wantedSettings({ conf, cniArgs }: Pick<Attachment<TuningConf>, "conf" | "cniArgs">): LinkSettings {
  const { args, runtimeConfig } = conf;
  const mac = args?.cni?.mac ?? (runtimeConfig?.mac || parseCniArgs(cniArgs, ["MAC"]).MAC || conf.mac);
  const mtu = args?.cni?.mtu ?? conf.mtu;
  const allmulti = args?.cni?.allmulti ?? conf.allmulti;
  const txQLen = args?.cni?.txQLen ?? conf.txQLen;
  const settings: LinkSettings = {};
  if (mac) settings.mac = mac;
  if (args?.cni?.promisc ?? conf.promisc) settings.promisc = true;
  if (mtu) settings.mtu = mtu;
  if (allmulti !== undefined) settings.allmulti = allmulti;
  if (txQLen !== undefined) settings.txQLen = txQLen;
  return settings;
}

function checkSettings({ mac, mtu = 0, txQLen = 0 }: LinkSettings): void {
  if (mac !== undefined && parseMac(mac) === undefined) {
    throw new CniError(INVALID_CONFIG, `invalid args ${mac} for MAC addr: address ${mac}: invalid MAC address`);
  }
  if (mtu < 0 || mtu > MAX_U32) throw new CniError(INVALID_CONFIG, `"mtu": ${mtu} is not an MTU`);
  if (txQLen < 0 || txQLen > MAX_U32) throw new CniError(INVALID_CONFIG, `"txQLen": ${txQLen} is not a queue length`);
}

function linkNow({ host, ifName }: Attachment<TuningConf>, wanted: LinkSettings) {
  const link = getLink(host.container!.route, ifName);
  if (link === undefined) throw new CniError(INTERNAL, `failed to get "${ifName}": Link not found`);
  return { index: link.index, before: settingsOf(link, wanted) };
}

/** Changes the MAC of every interface with that name, including one on the host, like the reference plugin. */
function withMac({ prevResult, conf, ifName }: Attachment<TuningConf>, mac: string | undefined): Result {
  const result = prevResult ?? { cniVersion: conf.cniVersion };
  if (mac === undefined || result.interfaces === undefined) return result;
  const interfaces = [];
  for (const each of result.interfaces) interfaces.push(each.name === ifName ? { ...each, mac } : each);
  return { ...result, interfaces };
}
