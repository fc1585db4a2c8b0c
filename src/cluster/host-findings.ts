/** The store against what this host has been granted, the grants against leases, the leases against containers. */
import type { Grant, KeptState } from "./effects.ts";
import type { ClusterFinding } from "./findings.ts";
import type { Self } from "./node.ts";
import { type BlockRecord, isOwnedBy, nodeKey, type NodeRecord, type Stored } from "./records.ts";

/** What this host has, whatever the store says. */
export interface HostBlocks {
  self: Self;
  held: KeptState;
  isAgentRunning: boolean;
  /** Since `sync` had done all that was due, where no agent has run since. */
  secondsSinceSync?: number;
  leases: readonly HostLease[];
  attached: readonly AttachedAddress[];
  /** Addresses of its blocks that have been found on a segment. */
  foreign: readonly string[];
  /** With a directory of leases for each pool. */
  leaseDirectory: string;
  /** Whether commands look for leases there by themselves. */
  isUsualDirectory: boolean;
}

export interface HostLease {
  pool: string;
  address: string;
  /** The key; undefined for an address outside of the pool. */
  block: string | undefined;
  /** Undefined for a file that names no container. */
  containerId?: string;
  ifName?: string;
  /** The network in which it is attached. */
  inNetwork?: string;
  /** Whether some record knows the container. */
  isKnown: boolean;
}

export interface AttachedAddress {
  pool: string;
  address: string;
  network: string;
  containerId: string;
}

const START = "start its agent: 'systemctl start patchbay-node', or 'patchbay node'";

export function selfFindings(
  { self, held, isAgentRunning, secondsSinceSync }: Pick<
    HostBlocks,
    "self" | "held" | "isAgentRunning" | "secondsSinceSync"
  >,
  record: NodeRecord | undefined,
): ClusterFinding[] {
  const about = nodeKey(self.node), start = isAgentRunning ? undefined : START, found: ClusterFinding[] = [];
  const find = (problem: string, step = start) =>
    void found.push({ about, problem, ...step !== undefined && { step } });
  if (!isAgentRunning) found.push({ about, problem: "no agent runs on this host", ...adviceOn(secondsSinceSync) });
  if (record === undefined) find("the store has no record of this host");
  else if (record.machine !== self.machine) {
    const there = machineText(record.machine), here = machineText(self.machine);
    find(
      `in the store it is ${there}; this host is ${here}, and claims nothing`,
      `if that machine is off for good, 'patchbay node replace ${self.node} --it-is-off' here; if it runs, this host ` +
        'needs another name: "node" in /etc/patchbay/cluster.json',
    );
  } else if (record.generation < held.generation) {
    const had = `the store has generation ${record.generation}, and this host was ${held.generation}`;
    find(`${had}: the store has lost something`);
  } else if (record.state === "off") find("a person has said that this host is off");
  return found;
}

/** On a host without an agent: whether it is meant so. */
function adviceOn(secondsSinceSync: number | undefined): Pick<ClusterFinding, "step" | "isNote"> {
  if (secondsSinceSync === undefined) return { step: START };
  return { step: `'patchbay node sync' has done what was due, ${ago(secondsSinceSync)}`, isNote: true };
}

function ago(seconds: number): string {
  if (seconds < 120) return `${seconds} s ago`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 120 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ago`;
}

/** A machine's hash, or a boot's id, as people compare them. */
export function short(hash: string): string {
  return hash.slice(0, 8);
}

/** A node that was removed without a record has no machine. */
export function machineText(hash: string): string {
  return hash === "" ? "a machine that nobody knows" : `machine ${short(hash)}`;
}

/** `records`: of each block that is granted, or that the store lists as this host's. */
export function grantFindings(
  host: HostBlocks,
  records: ReadonlyMap<string, Stored<BlockRecord> | undefined>,
): ClusterFinding[] {
  const { self, held, isAgentRunning } = host, generation = held.generation;
  const leased = new Set(host.leases.map(({ block }) => block));
  return [...records].flatMap(([key, record]): ClusterFinding[] => {
    const grant = held.grants.find((each) => each.key === key);
    const isMine = record !== undefined && isOwnedBy(record.value, self.node, generation);
    if (isMine && grant?.state === "unknown") {
      return [{ about: key, problem: NOT_KNOWN, step: "the next boot serves it" }];
    }
    if (isMine === (grant !== undefined)) return [];
    const problem = isMine
      ? "it is this host's in the store, and not granted here: a claim that was answered late"
      : `${ownerOf(record)} in the store, and ${
        leased.has(key) ? "containers here have its addresses" : described(grant)
      }`;
    return [{ about: key, problem, step: stepFor(isMine ? undefined : record, isAgentRunning) }];
  });
}

const NOT_KNOWN =
  "it is not served: this host's state directory was emptied while containers ran, and nobody knows " +
  "which addresses they have";

function ownerOf(record: Stored<BlockRecord> | undefined): string {
  return record?.value.owner === undefined ? "it is nobody's" : `it is ${record.value.owner.node}'s`;
}

function described(grant: Grant | undefined): string {
  return grant?.state === "closing" ? "this host was giving it back" : "granted here";
}

function stepFor(record: Stored<BlockRecord> | undefined, isAgentRunning: boolean): string {
  if (!isAgentRunning) return START;
  const { owner } = record?.value ?? {};
  return owner === undefined
    ? "the agent puts it right within two minutes; 'patchbay node check' shows the alarm"
    : "the store was restored, or this host was removed while it ran: detach the containers that have its addresses, " +
      `here or on ${owner.node}`;
}

export function foreignHostFindings({ foreign }: HostBlocks): ClusterFinding[] {
  return foreign.map((address) => ({
    about: address,
    problem: "another host of the segment has it, although it is the pool's: it is given to nobody here",
    step: 'take it from that host, or put it into "exclude" of the pool\'s range',
  }));
}

export function grantedLeaseFindings(
  { held, leases, attached, leaseDirectory, isUsualDirectory }: HostBlocks,
): ClusterFinding[] {
  const granted = new Set(held.grants.map(({ key }) => key)), addresses = new Set(leases.map(keyOfAddress));
  return [
    ...leases.flatMap((lease): ClusterFinding[] => {
      const { address: about, block, pool, inNetwork, isKnown, containerId, ifName } = lease;
      if (containerId === undefined) return [];
      const leases = `container ${containerId}${ifName === undefined ? "" : ` (${ifName})`} leases it`;
      if (block === undefined || !granted.has(block)) {
        const where = block === undefined
          ? "outside of the pool"
          : `in ${block}, which this host has not been granted`;
        const detach = inNetwork === undefined
          ? "detach the container"
          : `'patchbay del ${inNetwork} ${containerId}'`;
        return [{ about, problem: `${leases}, ${where}`, step: `${detach}: another node may give the address out` }];
      }
      if (isKnown) return [];
      const release = isUsualDirectory && inNetwork !== undefined
        ? `'patchbay ipam release ${inNetwork} ${about}'`
        : `'patchbay ipam release ${pool} ${about} --data-dir ${leaseDirectory}'`;
      const step = `when it is gone, ${release} gives the address back`;
      return [{ about, problem: `${leases}, and no record knows that container`, step }];
    }),
    ...attached.filter((each) => !addresses.has(keyOfAddress(each))).map(({ address, network, containerId }) => ({
      about: address,
      problem: `container ${containerId} has it in network ${network}, and no lease says so: another may get it`,
      step: `attach it anew: 'patchbay del ${network} ${containerId}', then add`,
    })),
  ];
}

function keyOfAddress({ pool, address }: { pool: string; address: string }): string {
  return `${pool} ${address}`;
}
