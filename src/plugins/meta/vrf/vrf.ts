/**
 * vrf: adds a link that earlier plugins made to a VRF in the container, and makes the VRF if needed.
 *
 * Behaviour follows the reference plugin `plugins/meta/vrf`. Owns in the container: the membership, and the VRF as long
 * as it has members.
 */
import { AF_UNSPEC } from "../../../ffi/socket/socket.ts";
import { checkIfName } from "../../../cni/invocation.ts";
import { CniError, INTERNAL, INVALID_CONFIG, PLUGIN_NOT_AVAILABLE } from "../../../cni/error.ts";
import { versionsSince } from "../../../cni/versions.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { getLink, knowsLinkKind, type Link, linkIndex } from "../../../ffi/netlink/route/link.ts";
import { listRouteImages } from "../../../ffi/netlink/route/route-image.ts";
import { listRoutingRules } from "../../../ffi/netlink/route/rule.ts";
import { tablesInUse, takeFreeTable, vrfTable } from "../../../resources/routing/shared/routing-tables.ts";
import { vrf } from "../../../resources/routing/vrf.ts";
import { addressesAndRoutesOf, vrfMember } from "../../../resources/routing/vrf-member.ts";
import { validateVrfConf } from "./vrf.validate.gen.ts";
import type { Container } from "../../../contract/host.ts";
import type { Result } from "../../../cni/result.ts";
import type { VrfConf } from "./vrf.schema.ts";

const LOWEST_TABLE = 1;
const MAX_U32 = 0xffffffff;

export default definePlugin<VrfConf>({
  name: "vrf",
  versions: versionsSince("0.3.1"),
  validate: validateVrfConf,
  judge: checkConf,
  missingPrevResult: "missing prevResult from earlier plugin",
  add,
  status(_conf, { route }) {
    if (!knowsLinkKind(route, "vrf")) {
      throw new CniError(PLUGIN_NOT_AVAILABLE, "this kernel has no VRFs (CONFIG_NET_VRF)");
    }
  },
});

function add(at: Attachment<VrfConf>): Result {
  const { conf, ifName, prevResult = { cniVersion: at.conf.cniVersion } } = at;
  if (at.purpose === "make") {
    join(at);
    return prevResult;
  }
  for (const name of namesToRestate(at)) {
    at.applyAll([
      vrf({ name, table: conf.table || undefined }),
      vrfMember({ ifName, vrf: name, addresses: [], routes: [] }),
    ]);
  }
  return prevResult;
}

function join(at: Attachment<VrfConf>): void {
  const { conf, ifName, host } = at, container = host.container!;
  container.alone(() => {
    const link = freeLink(ifName, container);
    const table = tableOf(conf, container);
    at.applyAll([
      vrf({ name: conf.vrfname, table }),
      vrfMember({ ifName, vrf: conf.vrfname, table, ...addressesAndRoutesOf(link, container) }),
    ]);
  });
}

function checkConf({ vrfname, table }: VrfConf): void {
  if (vrfname === "") throw new CniError(INVALID_CONFIG, "configuration is expected to have a valid vrf name");
  try {
    checkIfName(vrfname);
  } catch (error) {
    throw new CniError(INVALID_CONFIG, `"vrfname": ${(error as Error).message}`, `it is "${vrfname}"`);
  }
  if (table < 0 || table > MAX_U32) throw new CniError(INVALID_CONFIG, `"table": ${table} is not a routing table`);
}

/** For DEL also the VRF that contains the link, because the configuration may have changed since ADD. */
function namesToRestate({ conf, ifName, host, purpose }: Attachment<VrfConf>): Set<string> {
  if (purpose !== "undo") return new Set([conf.vrfname]);
  const names = new Set<string>(), route = host.container?.route;
  if (route === undefined) return names;
  if (linkIndex(route, conf.vrfname) !== undefined) names.add(conf.vrfname);
  const master = getLink(route, ifName)?.master;
  const link = master === undefined ? undefined : getLink(route, master);
  if (link?.kind === "vrf") names.add(link.name);
  return names;
}

function freeLink(ifName: string, { route }: Container): Link {
  const link = getLink(route, ifName);
  if (link === undefined) throw failed(`could not get link by name ${ifName}`);
  if (link.master === undefined) return link;
  throw failed(`interface ${ifName} has already a master set: ${getLink(route, link.master)?.name ?? link.master}`);
}

/** The table of the existing VRF, or of the one that will be made. */
function tableOf({ vrfname, table }: VrfConf, { route }: Container): number {
  const existing = getLink(route, vrfname);
  if (existing === undefined) {
    return table ||
      takeFreeTable(tablesInUse(route, listRoutingRules(route, AF_UNSPEC), listRouteImages(route)), LOWEST_TABLE);
  }
  const existingTable = vrfTable(existing);
  if (existingTable === undefined) throw failed(`Netlink ${vrfname} is not a VRF`);
  if (table === 0 || table === existingTable) return existingTable;
  throw failed(`VRF ${vrfname} already exist with different routing table ${existingTable}`);
}

function failed(reason: string): CniError {
  return new CniError(INTERNAL, `cmdAdd failed: ${reason}`);
}
