/**
 * sbr: source-based routing. Packets from each address of the link are routed by a table of that address, so replies
 * leave by the link that the request came in by. The main table keeps the routes of the other links.
 *
 * Behaviour follows the reference plugin `plugins/meta/sbr`. Owns in the container: the rules, and without `table` the
 * routes in tables that nobody used before.
 */
import { AF_INET, AF_INET6, AF_UNSPEC } from "../../../ffi/socket/socket.ts";
import { CniError, INTERNAL, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { linkIndex } from "../../../ffi/netlink/route/link.ts";
import { listRouteImages, routesOfLink } from "../../../ffi/netlink/route/route-image.ts";
import { type ListedRule, listRoutingRules } from "../../../ffi/netlink/route/rule.ts";
import { RT_TABLE_MAIN } from "../../../ffi/netlink/uapi/rtnetlink.ts";
import { formatAddress, parseAddress, parsePrefix } from "../../../net/address.ts";
import { linkRoutes } from "../../../resources/routing/link-routes.ts";
import { tablesInUse, takeFreeTable } from "../../../resources/routing/shared/routing-tables.ts";
import { sourceRule } from "../../../resources/routing/source-rule.ts";
import { withdrawnRoutes } from "../../../resources/routing/withdrawn-routes.ts";
import { mainTable, type OwnAddress, routesFor } from "./source-tables.ts";
import { addressesOn } from "../../shared/addresses-on.ts";
import { validateSbrConf } from "./sbr.validate.gen.ts";
import type { Resource } from "../../../contract/resource.ts";
import type { Result } from "../../../cni/result.ts";
import type { SbrConf } from "./sbr.schema.ts";

const FIRST_TABLE = 100;
const MAX_U32 = 0xffffffff;

export default definePlugin<SbrConf>({
  name: "sbr",
  validate: validateSbrConf,
  judge: checkConf,
  missingPrevResult: "This plugin must be called as chained plugin",
  add,
  status(_conf, { route }) {
    try {
      listRoutingRules(route, AF_INET);
    } catch (error) {
      const lacking = "this kernel has no policy routing (CONFIG_IP_MULTIPLE_TABLES)";
      throw new CniError(PLUGIN_NOT_AVAILABLE, lacking, (error as Error).message, { cause: error });
    }
  },
});

function add(at: Attachment<SbrConf>): Result {
  at.examine(() => requireAddresses(at));
  const { prevResult = { cniVersion: at.conf.cniVersion } } = at;
  if (at.purpose === "make") {
    const { conf: { table }, host } = at;
    host.container!.alone(() => at.applyAll(table === undefined ? ownTables(at) : onlyRules(at, table)));
    return prevResult;
  }
  // For `undo` the table is undefined: the rule is removed whichever table it leads to.
  const table = at.configured(() => at.conf.table, undefined);
  for (const source of sourcesToRestate(at)) at.apply(sourceRule({ source, table }));
  return prevResult;
}

function requireAddresses({ prevResult, ifName }: Attachment<SbrConf>): void {
  if (prevResult?.ips?.length) return;
  throw new CniError(INVALID_CONFIG, `No IP addresses supplied on interface: ${ifName}`);
}

function checkConf(conf: SbrConf): void {
  fixedGateways(conf);
  const { table } = conf;
  if (table === undefined || (table >= 1 && table <= MAX_U32)) return;
  throw new CniError(INVALID_CONFIG, `"table": ${table} is not a routing table`, "tables have numbers from 1 on");
}

function onlyRules(at: Attachment<SbrConf>, table: number): Resource<unknown>[] {
  const priorities = rulePriorities(listRoutingRules(at.host.container!.route, AF_UNSPEC));
  return ownAddresses(at).map(({ prefix: { bytes } }) =>
    sourceRule({ source: formatAddress(bytes), table, priority: priorities.next(bytes) })
  );
}

/** Each address's table, the rule that leads to it, and the changes to the main table. */
function ownTables(at: Attachment<SbrConf>): Resource<unknown>[] {
  const { conf, ifName, host } = at;
  const { route } = host.container!;
  const index = indexOf(at);
  const addresses = ownAddresses(at);
  const rules = listRoutingRules(route, AF_UNSPEC), everything = listRouteImages(route);
  const used = tablesInUse(route, rules, everything);
  const priorities = rulePriorities(rules);
  // An IPv4 route with several next hops stays: it cannot be divided among the addresses.
  const inMain = routesOfLink(everything, index, RT_TABLE_MAIN).filter(({ route }) => route.hops === undefined);
  const { withdrawn, hints } = mainTable(addresses, inMain, index, conf.addSourceHints);

  const resources: Resource<unknown>[] = [];
  const routes = (images: Uint8Array[]) => images.map((bytes) => bytes.toHex());
  for (const address of addresses) {
    const { bytes } = address.prefix;
    const table = takeFreeTable(used, FIRST_TABLE);
    const taken = routesFor(address, addresses, inMain, index, fixedGateways(conf));
    resources.push(linkRoutes({ ifName, table, routes: routes(taken) }));
    resources.push(sourceRule({ source: formatAddress(bytes), table, priority: priorities.next(bytes) }));
  }
  if (withdrawn.length > 0) resources.push(withdrawnRoutes({ ifName, routes: routes(withdrawn) }));
  if (hints.length > 0) resources.push(linkRoutes({ ifName, table: RT_TABLE_MAIN, routes: routes(hints) }));
  return resources;
}

function indexOf({ host, ifName }: Attachment<SbrConf>): number {
  const index = linkIndex(host.container!.route, ifName);
  if (index === undefined) throw new CniError(INTERNAL, `Cannot find network interface ${ifName}: Link not found`);
  return index;
}

/** The link's addresses in prevResult. An address without an interface counts if the link has it. */
function ownAddresses({ prevResult, ifName, host }: Attachment<SbrConf>): OwnAddress[] {
  const own: OwnAddress[] = [];
  for (const ip of prevResult?.ips ?? []) {
    const prefix = parsePrefix(ip.address)!;
    const owner = ip.interface === undefined ? undefined : prevResult!.interfaces?.[ip.interface];
    const isOwn = owner === undefined
      ? addressesOn(host, ifName).has(formatAddress(prefix.bytes))
      : owner.name === ifName;
    if (isOwn) own.push({ prefix, gateway: ip.gateway === undefined ? undefined : parseAddress(ip.gateway) });
  }
  return own;
}

/** Sources that ADD may have made rules for: addresses in prevResult or on the link, but on no other link. */
function sourcesToRestate(at: Attachment<SbrConf>): Set<string> {
  const sources = new Set<string>();
  if (at.host.container === undefined) return sources;
  const here = addressesOn(at.host, at.ifName), anywhere = addressesOn(at.host);
  for (const { prefix } of ownAddresses(at)) {
    const source = formatAddress(prefix.bytes);
    if (here.has(source) || !anywhere.has(source)) sources.add(source);
  }
  if (at.purpose === "undo") { for (const source of here) sources.add(source); }
  return sources;
}

/** The priorities that the kernel would choose for new rules: each before the second rule, after the local table's. */
function rulePriorities(rules: readonly ListedRule[]): { next(source: Uint8Array): number } {
  const first: Record<number, number> = {};
  for (const family of [AF_INET, AF_INET6]) {
    const ofFamily = rules.filter((rule) => rule.family === family);
    first[family === AF_INET ? 4 : 16] = ofFamily[1]?.priority ?? 0x7ffe;
  }
  return { next: ({ length }) => first[length] = Math.max(0, first[length]! - 1) };
}

/** At most one for each family. */
function fixedGateways({ gateways = [] }: SbrConf): Uint8Array[] {
  if (gateways.length > 2) {
    throw new CniError(
      INVALID_CONFIG,
      "gateways list cannot contain more than 2 entries (one IPv4, one IPv6)",
      `"gateways" has ${gateways.length}`,
    );
  }
  const parsed: Uint8Array[] = [];
  for (const text of gateways) {
    const bytes = parseAddress(text);
    if (bytes === undefined) throw new CniError(INVALID_CONFIG, `invalid static gateway IP address: ${text}`);
    if (parsed[0]?.length === bytes.length) {
      const family = bytes.length === 4 ? "IPv4" : "IPv6";
      throw new CniError(
        INVALID_CONFIG,
        `gateways list contains multiple ${family} addresses: ${gateways.join(", ")}`,
      );
    }
    parsed.push(bytes);
  }
  return parsed;
}
