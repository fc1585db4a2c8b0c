/**
 * bandwidth: limits what a container sends and receives, on the host's end of its veth pair.
 *
 * Behaviour follows the reference plugin `plugins/meta/bandwidth`, with the subnets of its releases 1.5. Owns in the
 * kernel: the queueing disciplines of the host's end, and an ifb for the packets that the container sends.
 */
import { CniError, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { versionsSince } from "../../../cni/versions.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { getLink, knowsLinkKind, type Link, linkIndex } from "../../../ffi/netlink/route/link.ts";
import { warn } from "../../../process/warn.ts";
import { randomMac } from "../../../ffi/random.ts";
import { ifb } from "../../../resources/traffic/ifb.ts";
import { redirect } from "../../../resources/traffic/redirect.ts";
import { trafficLimit } from "../../../resources/traffic/traffic-limit/traffic-limit.ts";
import { validateBandwidthConf } from "./bandwidth.validate.gen.ts";
import { hasLimits, type Limits, limitsOf } from "./limits.ts";
import { datapathOf } from "../../shared/datapath.ts";
import type { Host } from "../../../contract/host.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { Interface, Result } from "../../../cni/result.ts";
import type { BandwidthConf } from "./bandwidth.schema.ts";
import { knowsAction, knowsQdisc } from "../../../ffi/netlink/tc/known-kind.ts";

export default definePlugin<BandwidthConf>({
  name: "bandwidth",
  // Older results do not contain the host's interfaces.
  versions: versionsSince("0.3.0"),
  validate: validateBandwidthConf,
  judge: (conf) => void limitsOf(conf),
  missingCapability: (conf) =>
    hasLimits(conf) || conf.runtimeConfig?.bandwidth !== undefined ? undefined : "bandwidth",
  missingPrevResult: "must be called as chained plugin",
  add: (at) => limit(at, hostEnd),
  foresee: (at) => limit(at, hostEndToBe),
  status,
  sweeps: ["ifb"],
});

type HostEnd = Pick<Link, "name" | "mac" | "mtu"> & Partial<Pick<Link, "master">>;

/** As with Go's plugin, what is written in the configuration counts. */
function warnOfOverruled(conf: BandwidthConf): void {
  const asked = conf.runtimeConfig?.bandwidth ?? {};
  const overruled = rates.filter((key) => asked[key] !== undefined && asked[key] !== conf[key]);
  if (!hasLimits(conf) || overruled.length === 0) return;
  const keys = overruled.map((key) => `"${key}"`).join(", ");
  warn(`bandwidth: ${keys} that the container asks for: no effect, because the configuration has limits of its own`);
}

const rates = ["ingressRate", "ingressBurst", "egressRate", "egressBurst"] as const;

function limit(at: Attachment<BandwidthConf>, find: (at: Attachment<BandwidthConf>) => HostEnd | undefined): Result {
  const limits: Limits = at.configured(() => limitsOf(at.conf), {});
  const { ingress, egress, subnets } = limits;
  at.examine(() => warnOfOverruled(at.conf));
  const { prevResult = { cniVersion: at.conf.cniVersion } } = at;
  if (!at.mayHave(ingress !== undefined || egress !== undefined)) return prevResult;
  const hostVeth = find(at);
  const from = { name: hostVeth?.name ?? "", mac: hostVeth?.mac ?? "" };
  at.inAdd(() => warnOfSmallBursts(limits, hostVeth!));

  const datapath = egress && hostVeth && datapathOf({ master: undefined, ...hostVeth }, at);
  at.examine(() => refuseProcess(datapath, hostVeth!));
  const wanted: Resource[] = [];
  if (at.mayHave(ingress !== undefined)) {
    wanted.push(trafficLimit({ link: from, limit: ingress, subnets: subnets && { ...subnets, side: "source" } }));
  }
  const owner = { network: at.network, containerId: at.containerId, ifName: at.ifName };
  const ifbs = at.purpose === "undo" ? ifbsToLookFor(at) : egress === undefined ? [] : [ifbOf(at)];
  for (const { name, mac = "" } of ifbs) {
    wanted.push(
      ifb({ ...owner, name, mac, mtu: hostVeth?.mtu, from: from.name }),
      trafficLimit({
        link: { name, mac },
        limit: egress,
        subnets: subnets && { ...subnets, side: "destination" },
        goesWithLink: true,
      }),
      redirect({ from, to: name, qdisc: datapath === "kernel" ? "clsact" : undefined }),
    );
  }
  at.applyAll(wanted);
  return { ...prevResult, interfaces: [...prevResult.interfaces ?? [], ...ifbs] };
}

function refuseProcess(datapath: ReturnType<typeof datapathOf>, { name }: HostEnd): void {
  if (datapath !== "process") return;
  throw new CniError(
    INVALID_CONFIG,
    `"egressRate" has no effect on ${name}: ovs-vswitchd takes the container's packets before the kernel limits them`,
    "leave it out, and limit them by a meter in Open vSwitch, or use a bridge with the kernel's datapath",
  );
}

/** The host's end of the container's veth pair. DEL may not find it: the limits were deleted with the link. */
function hostEnd({ host, ifName, prevResult, purpose }: Attachment<BandwidthConf>): HostEnd | undefined {
  const mayBeGone = purpose === "undo";
  const missing = (reason: string) => {
    if (!mayBeGone) throw new CniError(INVALID_CONFIG, reason);
    return undefined;
  };
  const alone = (reason: string) => missing(`container interface ${ifName} has no veth peer: ${reason}`);
  if (!prevResult?.interfaces?.length && !mayBeGone) return missing("no interfaces provided");
  const inside = host.container && getLink(host.container.route, ifName);
  if (inside === undefined) return alone(`could not look up "${ifName}": Link not found`);
  if (inside.kind !== "veth" || inside.link === undefined) {
    return alone(`interface "${ifName}" was not a veth interface`);
  }
  const outside = getLink(host.route, inside.link);
  if (outside?.kind !== "veth" || outside.link !== inside.index) {
    return missing(`veth peer with index ${inside.link} is not in host ns`);
  }
  for (const { name, sandbox } of prevResult?.interfaces ?? []) if (name === outside.name && !sandbox) return outside;
  return mayBeGone ? outside : missing("no veth peer of container interface found in host ns");
}

/** For plan, when there is no pair yet: the last host interface that the previous plugins would make. */
function hostEndToBe({ prevResult }: Attachment<BandwidthConf>): HostEnd {
  const end = prevResult?.interfaces?.findLast(({ sandbox }) => !sandbox);
  if (end === undefined) throw new CniError(INVALID_CONFIG, "no interfaces provided");
  return { name: end.name, mac: end.mac ?? "", mtu: end.mtu ?? 0 };
}

/**
 * The ifb of this attachment. It has the reference plugin's name unless that is taken: that name does not contain the
 * interface, so a second interface of the container would get the same one.
 */
function ifbOf(at: Attachment<BandwidthConf>): Interface {
  const names = ifbNames(at);
  return {
    name: at.choose(() => firstFree(names, at.host), (result) => knownIfb(result, names)?.name) || names[0]!,
    mac: at.choose(randomMac, (result) => knownIfb(result, names)?.mac),
  };
}

/**
 * For a DEL without a ledger. Ignores the MAC in prevResult, which may be that of an earlier ifb with the same name.
 */
function ifbsToLookFor(at: Attachment<BandwidthConf>): Interface[] {
  const names = ifbNames(at);
  const known = at.prevResult && knownIfb(at.prevResult, names);
  return known === undefined ? [{ name: names[0]! }, { name: names[1]! }] : [{ name: known.name }];
}

function ifbNames({ network, containerId, ifName }: Attachment<BandwidthConf>): string[] {
  return [ifbName(network + containerId), ifbName(`${network}${containerId}/${ifName}`)];
}

function ifbName(text: string): string {
  return `bwp${new Bun.CryptoHasher("sha512").update(text).digest("hex").slice(0, 12)}`;
}

function firstFree(names: string[], host: Host): string {
  for (const name of names) if (linkIndex(host.route, name) === undefined) return name;
  return names[0]!;
}

function knownIfb(result: Result, names: string[]): Interface | undefined {
  return result.interfaces?.find(({ name, sandbox }) => !sandbox && names.includes(name));
}

/** The Ethernet header. */
const ETHERNET_BYTES = 14;

function warnOfSmallBursts({ ingress, egress }: Limits, { mtu }: HostEnd): void {
  for (const [key, limit] of [["ingressBurst", ingress], ["egressBurst", egress]] as const) {
    if (limit === undefined || limit.burst >= mtu + ETHERNET_BYTES) continue;
    warn(
      `bandwidth: "${key}" of ${limit.burst * 8} bits is less than a packet of ${mtu} bytes, which will be dropped`,
    );
  }
}

/** Does not check for u32 filters, because the kernel only shows them when one is made. */
function status(conf: BandwidthConf, { route }: Host): void {
  const lacking: string[] = [];
  if (!knowsLinkKind(route, "ifb")) lacking.push("ifb links");
  for (const kind of ["tbf", "ingress", ...limitsOf(conf).subnets === undefined ? [] : ["htb"]]) {
    if (!knowsQdisc(route, kind)) lacking.push(`the queueing discipline ${kind}`);
  }
  if (knowsAction(route, "mirred") === false) lacking.push("the action mirred");
  if (lacking.length > 0) throw new CniError(PLUGIN_NOT_AVAILABLE, `this kernel lacks ${lacking.join(" and ")}`);
}
