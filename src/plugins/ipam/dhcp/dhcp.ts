/**
 * dhcp: addresses from the network's own servers (CNI spec 1.1.0, section 4; reference plugin dhcp).
 *
 * A service holds the leases (src/services/dhcp/service/), because they have to be renewed when this process has long ended. The
 * plugin asks it, and its journal is the record. DEL and GC also work while no service runs: they leave a note, and the
 * service releases the lease when it comes up.
 */
import {
  CniError,
  errorText,
  INTERNAL,
  INVALID_CONFIG,
  LIMITED_CONNECTIVITY,
  PLUGIN_NOT_AVAILABLE,
} from "../../../cni/error.ts";
import type { Dns, IpConfig, Result, Route } from "../../../cni/result.ts";
import { EarlierFailure } from "../../../contract/failures.ts";
import { asOwner, isSameOwner, type Owner } from "../../../contract/owner.ts";
import { type Attachment, definePlugin } from "../../../contract/plugin.ts";
import { Failed, NoAnswer, NoService } from "../../../services/dhcp/ask.ts";
import { configuredRoutes } from "../../../services/dhcp/configured-routes.ts";
import { Journal, recordsIn } from "../../../services/dhcp/journal/journal.ts";
import { type LeaseText, offeredOf } from "../../../services/dhcp/journal/lease-text.ts";
import type { LeaseText6 } from "../../../services/dhcp/journal/lease-text6.ts";
import { ownerName, type ServiceRequest } from "../../../services/dhcp/service-protocol.ts";
import { routesOf } from "../../../services/dhcp/v4/lease/routes.ts";
import { exists } from "../../../ffi/files.ts";
import { linkMac } from "../../../ffi/netlink/route/link.ts";
import { warn } from "../../../process/warn.ts";
import type { DhcpConf } from "./dhcp.schema.ts";
import { validateDhcpConf } from "./dhcp.validate.gen.ts";
import { askService, directoryOf } from "./service.ts";
import { ignoredOf, leaseOptionsOf, routesIn } from "./lease-options.ts";

type At = Attachment<DhcpConf>;

export default definePlugin<DhcpConf>({
  name: "dhcp",
  validate: validateDhcpConf,
  checksWithoutPrevResult: true,
  isReleasedThroughLink: true,
  mayWaitFor: () => ["DHCP"],
  judge(conf, call) {
    if (conf.ipam === undefined) throw new CniError(INVALID_CONFIG, "IPAM config missing 'ipam' key");
    const owner = { network: conf.name, containerId: "", ifName: "" };
    leaseOptionsOf(conf, { owner, cniArgs: call?.cniArgs ?? "K8S_POD_NAME=unknown", mac: undefined });
  },
  add: (at) => at.inAdd(() => acquire(at)) ?? at.prevResult ?? { cniVersion: at.conf.cniVersion },
  foresee,
  check,
  del: (at) =>
    orReleaseLater(at.conf, () => release(at.conf, asOwner(at)), (owner) => isSameOwner(owner, asOwner(at))),
  gc(conf, isValid) {
    const isStale = (owner: Owner) => owner.network === conf.name && !isValid(owner);
    orReleaseLater(conf, () => ownersAt(conf).filter(isStale).forEach((owner) => release(conf, owner)), isStale);
  },
  status,
});

/** Longer than the service takes for anything but a lease. */
const PATIENCE_MS = 30_000;
/** The service itself gives up before. */
const FOREVER_MS = 24 * 3600 * 1000;
/** While a service starts, it has its journal but does not listen. */
const STARTING_MS = 5000, LOOK_MS = 50;

const startIt = `start "patchbay dhcp", or the unit cni-dhcp.service`;

function acquire(at: At): Result {
  const { conf, cniArgs, netnsPath, host } = at, { container } = host, owner = asOwner(at);
  if (container === undefined) {
    throw new CniError(INTERNAL, `failed to Statfs "${netnsPath}": no such file or directory`);
  }
  const wishes = leaseOptionsOf(conf, { owner, cniArgs, mac: linkMac(container.route, owner.ifName) });
  const request: ServiceRequest = { do: "acquire", owner, netnsPath, wishes };
  const leases = asked(
    "error calling DHCP.Allocate: ",
    () => askService(conf, request, FOREVER_MS, container.netnsFd),
  );
  return resultOf(conf, leases);
}

function resultOf(conf: DhcpConf, { lease, lease6 }: { lease?: LeaseText; lease6?: LeaseText6 }): Result {
  const ignored = ignoredOf(conf), ipam = conf.ipam!, ips: IpConfig[] = [], routes: Route[] = [];
  const options = { ignored, priority: ipam.priority, routes: routesIn(ipam) };
  if (lease !== undefined) {
    ips.push({ address: lease.address, gateway: ignored.includes("routers") ? undefined : lease.routers[0] });
    routes.push(...routesOf(offeredOf(lease), options));
  }
  if (lease6 !== undefined) {
    // Routers say which other addresses are on the link, and the way to the rest.
    ips.push({ address: `${lease6.address}/128` });
    routes.push(...configuredRoutes(options, "ipv6"));
  }
  return {
    cniVersion: conf.cniVersion,
    ips,
    routes: routes.length > 0 ? routes : undefined,
    dns: ignored.includes("dns") ? undefined : dnsOf(lease, lease6),
  };
}

function dnsOf(lease: LeaseText | undefined, lease6: LeaseText6 | undefined): Dns | undefined {
  const nameservers = [...lease?.nameServers ?? [], ...lease6?.nameServers ?? []], domain = lease?.domain;
  const search = [...new Set([...lease?.search ?? [], ...lease6?.search ?? []])];
  if (nameservers.length === 0 && domain === undefined && search.length === 0) return undefined;
  return {
    nameservers: nameservers.length > 0 ? nameservers : undefined,
    domain,
    search: search.length > 0 ? search : undefined,
  };
}

/** The lease that is held already; only a server can say what another one would be. */
function foresee(at: At): Result {
  const { conf } = at;
  const held = recordsIn(directoryOf(conf)).find(({ record }) => isSameOwner(record, asOwner(at)))?.record;
  return resultOf(conf, { lease: held?.v4?.lease, lease6: held?.v6?.lease });
}

/** Asks the service, which sends nothing for it. */
function check(at: At): string[] {
  try {
    askService(at.conf, { do: "check", owner: asOwner(at) }, PATIENCE_MS);
    return [];
  } catch (error) {
    if (error instanceof Failed) return [`dhcp: ${error.message}`];
    if (error instanceof NoService) return [`${error.message}; ${startIt}`];
    throw error;
  }
}

function release(conf: DhcpConf, owner: Owner): void {
  asked("error calling DHCP.Release: ", () => askService(conf, { do: "release", owner }, PATIENCE_MS));
}

/** The service says who has a lease on the network. */
function ownersAt(conf: DhcpConf): Owner[] {
  const all: Owner[] = [];
  for (let after = "";;) {
    const request: ServiceRequest = { do: "list", network: conf.name, after };
    const { owners = [] } = asked("error calling DHCP.Release: ", () => askService(conf, request, PATIENCE_MS));
    const last = owners.at(-1);
    if (last === undefined || ownerName(last) <= after) return all;
    all.push(...owners);
    after = ownerName(last);
  }
}

/** Lets the service do it, or leaves a note for each lease while none runs. */
function orReleaseLater(conf: DhcpConf, byService: () => void, isMeant: (owner: Owner) => boolean): void {
  const deadline = performance.now() + STARTING_MS;
  for (;;) {
    try {
      return byService();
    } catch (error) {
      const cause = error instanceof CniError ? error.cause : undefined;
      if (!(cause instanceof NoService) && !(cause instanceof NoAnswer)) throw error;
      if (releaseAllLater(directoryOf(conf), isMeant)) return;
      if (performance.now() > deadline) throw error;
      Bun.sleepSync(LOOK_MS);
    }
  }
}

/** False when a service has the journal. */
function releaseAllLater(directory: string, isMeant: (owner: Owner) => boolean): boolean {
  let journal: Journal | undefined;
  try {
    if (!exists(directory)) return true;
    journal = Journal.open(directory);
    if (journal === undefined) return false;
    for (const { record } of recordsIn(directory)) if (isMeant(record)) journal.releaseLater(record, true);
  } catch (error) {
    // The server gives the address away when the lease is over, and nobody renews one whose container is gone.
    warn(`the DHCP service will not know that a container is gone: ${errorText(error)}`);
  } finally {
    journal?.close();
  }
  return true;
}

function asked<Reply>(context: string, work: () => Reply): Reply {
  try {
    return work();
  } catch (error) {
    if (error instanceof Failed) throw new CniError(INTERNAL, context + error.message, error.hint, { cause: error });
    if (error instanceof NoService) throw new CniError(INTERNAL, error.message, startIt, { cause: error });
    throw error;
  }
}

function status(conf: DhcpConf): void {
  let report;
  try {
    ({ report } = askService(conf, { do: "report", network: conf.name }, PATIENCE_MS));
  } catch (error) {
    if (!(error instanceof NoService) && !(error instanceof Failed)) throw error;
    throw unserved(conf, error);
  }
  const { obstacle, forgottenInS, unanswered = 0 } = report ?? {};
  if (unanswered > 0) {
    throw new CniError(LIMITED_CONNECTIVITY, `no server renews ${unanswered} leases of network "${conf.name}"`);
  }
  if (obstacle !== undefined) {
    const details = `look at the DHCP server; STATUS succeeds again in ${forgottenInS} s unless another ADD fails`;
    throw new EarlierFailure(PLUGIN_NOT_AVAILABLE, `the last ADD got no address: ${obstacle}`, details);
  }
}

/** A service that refuses us is there all the same, and renews its leases. */
function unserved(conf: DhcpConf, error: NoService | Failed): CniError {
  const hint = error instanceof Failed ? error.hint : startIt,
    isThere = error instanceof Failed && !(error instanceof NoAnswer);
  if (isThere || !recordsIn(directoryOf(conf)).some(({ record }) => record.network === conf.name)) {
    return new CniError(PLUGIN_NOT_AVAILABLE, error.message, hint, { cause: error });
  }
  const details = `${hint}; nobody renews the leases of this network`;
  return new CniError(LIMITED_CONNECTIVITY, error.message, details, { cause: error });
}
