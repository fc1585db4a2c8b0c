/** `patchbay ipam`: leases; taking host-local's over from Go's plugin, and handing them back. */
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { counted } from "../../../contract/counted.ts";
import { ownerText } from "../../../contract/owner.ts";
import { DEFAULT_DIRECTORY } from "../../../services/dhcp/service-protocol.ts";
import type { KnownAttachment } from "../../../engine/operator/known-attachment.ts";
import { isNamespaceGone } from "../../../engine/operator/inspect.ts";
import { HostView } from "../../../engine/ledger/whereabouts.ts";
import { exists } from "../../../ffi/files.ts";
import { DEFAULT_DATA_DIRECTORY, leaseDirectory } from "../../../ipam/go-directory.ts";
import { releaseLease } from "../../../ipam/claims.ts";
import type { StoreOptions } from "../../../ipam/store.ts";
import { isMovedAway } from "../../../ipam/moved-leases.ts";
import { exportLeases, importLeases, leaseAt, type LeaseFile, listLeases } from "../../../ipam/take-over.ts";
import { canonicalAddress, parseAddress } from "../../../net/address.ts";
import { networkNames } from "../../../runtime/conf/directory.ts";
import { attachmentsOfContainer, knownAttachments } from "../../../runtime/records.ts";
import { closestName } from "../../../cni/spelling.ts";
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { describeLease, dhcpLeases, type LeaseState } from "../dhcp-leases.ts";
import { dataDirOf, heldInPools, type HeldLease, heldLeases, networksWithLeases } from "../held-leases.ts";
import { namedBy, shownName, whyTooShort } from "../named-attachments.ts";
import { containerNote, DIGITS_TO_REMOVE, runtimeOf, runtimeOptions } from "../network-arguments.ts";
import { configDirectoryOfCaller } from "../../../runtime/paths.ts";
import { print, printLine, printToStderr } from "../../../process/output.ts";
import { textTable } from "../text-table.ts";
import { checkBlocks, showBlocks } from "../ipam-of-pools.ts";
import { importWhereabouts, whereaboutsOptions } from "../imported-pools.ts";
import { clusterOption } from "../shown-pools.ts";
import { DATA_DIRECTORY } from "../../../services/node/paths.ts";

export const ipamCommand: Command = {
  runsByItself: true,
  printsAfterwards: true,
  summary: "list, release, import and export leases of host-local and pools; show and check blocks of pools",
  operands: "list|release|import|export|show|check [NETWORK] [ADDRESS…]",
  operandCount: [1, Infinity],
  needsRoot: (given) => ["show", "check"].includes(given.operands[0]!) && !given.has("all"),
  options: {
    "data-dir": {
      value: "DIR",
      isNeverEmpty: true,
      help: `directory with a folder of leases for each network (${DEFAULT_DATA_DIRECTORY}); ` +
        `show, check: what 'patchbay node' keeps (${DATA_DIRECTORY})`,
    },
    "dhcp-dir": {
      value: "DIR",
      isNeverEmpty: true,
      help: `where the DHCP service keeps leases (${DEFAULT_DIRECTORY})`,
    },
    container: {
      value: "CONTAINER",
      isNeverEmpty: true,
      help: "release: all addresses of this container, which is gone",
    },
    force: { help: "release: also those of a container that lives" },
    "cache-dir": runtimeOptions["cache-dir"]!,
    ifname: { value: "NAME", isNeverEmpty: true, help: "release: only the addresses of its interface NAME" },
    all: { help: "show: the blocks of every node, as the store has them" },
    config: { ...clusterOption["config"]!, help: `show, check, import --pool: ${clusterOption["config"]!.help}` },
    ...whereaboutsOptions,
    json: { help: "list, show, check: print JSON" },
  },
  notes: [
    "list [NETWORK]                          print who has which address",
    "release NETWORK ADDRESS…                release these addresses, unless a container that lives has one",
    "release NETWORK --container CONTAINER   release all addresses of a container that is gone",
    "import NETWORK                          take the directory over from Go's host-local; otherwise the first ADD does",
    "import whereabouts --file FILE          print a pool that excludes what Whereabouts has given out, or change --pool",
    "export NETWORK                          remove from the directory what Go's host-local does not know",
    "show [POOL]                             print which blocks of pools this host has, and how much of them is leased",
    "check                                   compare the store of pools, what this host was granted, leases, containers",
  ].map((line) => `  ${line}\n`).join("") + containerNote(DIGITS_TO_REMOVE),
  exitStatus: "1 also when check finds a difference.",
  examples: [
    { args: "list", what: "all leases, and who has them" },
    { args: "release first 10.70.0.9", what: "give this address back" },
  ],
  run(given) {
    const [action, network, ...addresses] = given.operands;
    switch (action) {
      case "list":
      case "ls":
        return list(given, network);
      case "release":
        if (network !== undefined) refuseLeasesOfDhcp(given, network, addresses);
        return release(given, placesOf(given, network), addresses);
      case "import":
        if (network === "whereabouts" && given.has("file")) return importWhereabouts(given);
        return takeOver(importLeases, "indexed", named(given, network));
      case "export":
        return takeOver(exportLeases, "left to Go's host-local", named(given, network));
      case "show":
        return showBlocks(given);
      case "check":
        return checkBlocks(given);
    }
    throw new UsageError(`ipam knows list, release, import, export, show and check, not ${action}`);
  },
};

function named(given: GivenArguments, network: string | undefined): StoreOptions {
  if (network === undefined) throw new UsageError(`ipam ${given.operands[0]} needs the NETWORK's name`);
  const directory = leaseDirectory(dataDirOf(given), network);
  if (!exists(directory)) throw unknownNetwork(given, network);
  return storeIn(directory);
}

function storeIn(directory: string): StoreOptions {
  // For leases of an earlier boot, the index has what the network's configuration said.
  return { directory, keep: false, quarantineSeconds: 0, report: printToStderr };
}

/** Its own directory, unless it has leases of pools alone; and the pools in which it has some. */
function placesOf(given: GivenArguments, network: string | undefined): StoreOptions[] {
  const pools = new Set(network && heldInPools(given, network).map(({ directory }) => directory));
  const hasOwn = network !== undefined && exists(leaseDirectory(dataDirOf(given), network));
  return [...hasOwn || pools.size === 0 ? [named(given, network)] : [], ...[...pools].map(storeIn)];
}

/** For a network that has neither a lease nor a configuration. */
function isKnown(given: GivenArguments, network: string): boolean {
  return exists(leaseDirectory(dataDirOf(given), network)) ||
    networkNames(configDirectoryOfCaller()).includes(network);
}

function unknownNetwork(given: GivenArguments, network: string): Error {
  const meant = closestName(network, networksWithLeases(given));
  const hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  return new Error(`${dataDirOf(given)}/${network}: no such file or directory; the network has no leases${hint}`);
}

interface Listed extends HeldLease {
  /** Undefined for a lease of host-local. */
  lease?: LeaseState;
}

function list(given: GivenArguments, network: string | undefined): number {
  const { compare } = new Intl.Collator("en", { numeric: true }); // 10.0.0.9 before 10.0.0.10
  const ofDhcp = dhcpLeases(dhcpDirOf(given)).filter((lease) => network === undefined || lease.network === network);
  for (const [option, directory] of [["data-dir", dataDirOf(given)], ["dhcp-dir", dhcpDirOf(given)]] as const) {
    if (given.has(option) && !exists(directory)) throw new Error(`--${option} ${directory}: no such directory`);
  }
  // A name that is none leads to no directory.
  if (network !== undefined) leaseDirectory(dataDirOf(given), network);
  const held = heldLeases(given, network);
  if (network !== undefined && ofDhcp.length + held.length === 0 && !isKnown(given, network)) {
    throw unknownNetwork(given, network);
  }
  const inOrder = (leases: Listed[]) =>
    leases.sort((a, b) => compare(a.network, b.network) || compare(a.address, b.address));
  const leases = inOrder([...held, ...ofDhcp]);
  if (given.has("json")) {
    printLine(JSON.stringify(leases.map(({ lease, ...listed }) => ({ ...listed, ...lease }))));
    return 0;
  }
  const recorded = recordedHolders(given);
  const holderOf = ({ network, containerId = "", ifName = "" }: Listed) =>
    recorded.get(ownerText({ network, containerId, ifName }));
  const hasNames = leases.some((lease) => holderOf(lease) !== undefined);
  const rows = leases.map((listed) => {
    const { network, pool, address, containerId = "(not an attachment)", ifName = "", lease } = listed;
    const name = shownName(holderOf(listed) ?? UNRECORDED) ?? "-";
    const what = lease !== undefined ? describeLease(lease) : pool === undefined ? "" : `pool ${pool}`;
    return [network === "" ? "-" : network, address, containerId, ...hasNames ? [name] : [], ifName, what];
  });
  print(textTable(rows));
  return 0;
}

const UNRECORDED = { netnsPath: "", names: [] };

/** None when the records may not be read. */
function recordedHolders(given: GivenArguments): Map<string, KnownAttachment> {
  try {
    return new Map(knownAttachments(runtimeOf(given)).map((one) => [ownerText(one), one]));
  } catch {
    return new Map();
  }
}

function release(given: GivenArguments, places: readonly StoreOptions[], addresses: string[]): number {
  const container = given.value("container");
  if ((container === undefined) === (addresses.length === 0)) {
    throw new UsageError("ipam release needs either addresses or --container");
  }
  const network = given.operands[1]!, directories = places.map(({ directory }) => directory);
  const isIts = (lease: LeaseFile) => (lease.owner?.inNetwork ?? network) === network && !isMovedAway(lease);
  const placed = (options: StoreOptions, leases: readonly LeaseFile[]) =>
    leases.filter(isIts).map((lease) => ({ ...lease, options }));
  const toRelease: AddressToRelease[] = container === undefined
    ? addresses.map((address) => {
      const bytes = parsed(address);
      const found = places.flatMap((options) => placed(options, [leaseAt(options.directory, bytes) ?? []].flat()));
      return { address, lease: found[0] };
    })
    : leasesOf(given, container, places.flatMap((options) => placed(options, listLeases(options.directory))))
      .map((lease) => ({ address: lease.address, lease }));
  if (toRelease.length === 0) throw new Error(`container ${container} has no address in ${directories.join(", ")}`);
  if (!given.has("force")) requireGone(given, network, toRelease.flatMap(({ lease }) => lease ?? []));
  let status = 0;
  for (const { address, lease } of toRelease) {
    const isReleased = lease !== undefined && releaseLease(lease.options, lease);
    if (!isReleased) status = 1;
    printLine(`${address}: ${isReleased ? `released, was ${lease.text.replaceAll("\r\n", "/")}` : "not leased"}`);
  }
  return status;
}

function dhcpDirOf(given: GivenArguments): string {
  return given.value("dhcp-dir") ?? DEFAULT_DIRECTORY;
}

/** The service would renew what is released behind its back. */
function refuseLeasesOfDhcp(given: GivenArguments, network: string, addresses: readonly string[]): void {
  const leases = dhcpLeases(dhcpDirOf(given)).filter((lease) => lease.network === network);
  if (leases.length === 0) return;
  const recorded = recordedHolders(given), container = given.value("container"), ifName = given.value("ifname");
  const holders = leases.map((lease) => ({ ...UNRECORDED, ...recorded.get(ownerText(lease)), ...lease }))
    .filter((lease) => ifName === undefined || lease.ifName === ifName);
  const wanted = addresses.map(canonicalAddress);
  const found = container === undefined
    ? holders.find(({ address }) => wanted.includes(canonicalAddress(address)))
    : namedBy(container, holders, DIGITS_TO_REMOVE)[0];
  if (found === undefined) return;
  const option = found.ifName === "eth0" ? "" : ` -i ${found.ifName}`;
  throw new Error(
    `${found.address} of container ${found.containerId} in network ${network} is from DHCP, and not released here; ` +
      `'patchbay del ${network} ${found.containerId}${option}' gives it back to the server`,
  );
}

/** An address as somebody writes it, or as its lease does. */
interface AddressToRelease {
  address: string;
  lease: PlacedLease | undefined;
}

interface PlacedLease extends LeaseFile {
  options: StoreOptions;
}

function parsed(text: string): Uint8Array {
  const address = parseAddress(text);
  if (address === undefined) throw new UsageError(`${text} is not an address`);
  return address;
}

/** The leases of its interfaces, or of one. A lease names an ID; the other names are in the records of attachments. */
function leasesOf(given: GivenArguments, container: string, leases: readonly PlacedLease[]): PlacedLease[] {
  const known = knownAttachments(runtimeOf(given)), ifName = given.value("ifname");
  const holders = leases.flatMap((lease) => {
    const { owner } = lease;
    if (owner === undefined || ifName !== undefined && owner.ifName !== ifName) return [];
    const recorded = known.find((one) => one.containerId === owner.containerId);
    return [{ ...UNRECORDED, ...recorded, lease, containerId: owner.containerId }];
  });
  const found = namedBy(container, holders, DIGITS_TO_REMOVE),
    ids = new Set(found.map(({ containerId }) => containerId));
  const tooShort = found.length === 0 ? whyTooShort(container, holders) : undefined;
  if (tooShort !== undefined) throw new Error(`container ${container} has no address; ${tooShort}`);
  if (ids.size > 1) throw new Error(`"${container}" is a name of the containers ${[...ids].join(" and ")}`);
  return found.map(({ lease }) => lease);
}

/** The next ADD would give a living container's address to another one. */
function requireGone(given: GivenArguments, network: string, leases: readonly LeaseFile[]): void {
  const view = new HostView();
  for (const { address, owner } of leases) {
    if (owner === undefined) continue;
    const { containerId } = owner;
    // Very old lease files name only the container.
    const holder = attachmentsOfContainer(runtimeOf(given), containerId).find((one) =>
      one.network === network && one.ifName === (owner.ifName ?? one.ifName) && !isNamespaceGone(one.recorded, view)
    );
    if (holder === undefined) continue;
    const its = `container ${containerId} has ${address} by ${holder.ifName} in network ${network}`;
    const option = holder.ifName === "eth0" ? "" : ` -i ${holder.ifName}`;
    const nextStep = `'patchbay del ${network} ${containerId}${option}' detaches it and releases its addresses; ` +
      "--force releases them all the same";
    throw new CniError(INTERNAL, `${its}, and lives; nothing is released`, "", { nextStep });
  }
}

function takeOver(work: (options: StoreOptions) => void, done: string, options: StoreOptions): number {
  work(options);
  const leases = listLeases(options.directory);
  printLine(`${options.directory}: ${counted(leases.length, "lease")} ${done}`);
  for (const { address, owner } of leases) {
    if (owner === undefined) {
      printToStderr(`${options.directory}/${address} does not name an attachment; it stays reserved`);
    }
  }
  return 0;
}
