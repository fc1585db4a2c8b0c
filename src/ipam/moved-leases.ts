/**
 * Leases that move from host-local's directory of a network into the directory of a pool. Containers keep their addresses.
 *
 * host-local, Go's too, never gives out an address that has a file. So at the end each address has one in its directory that
 * names nobody: whatever the configuration says, whoever calls, and after each boot, host-local gives nothing of them. Each
 * lease is in the pool's directory before its file here is replaced, so that it may be killed anywhere, and repeated.
 */
import { closeFile, O_RDONLY, replaceFile } from "../ffi/files.ts";
import { lockExclusive } from "../process/lock.ts";
import { openExistingState, readStateFile } from "../process/state-file.ts";
import { contains, formatAddress, fromBigInt, type Prefix, toBigInt } from "../net/address.ts";
import { blockAt, endEarlierBoot, existingBlocks, settleAll } from "./blocks.ts";
import { claim } from "./claims.ts";
import { createLease, leasedAddresses, type LeaseOwner, leaseOwnerIn, leaseText, readLease } from "./go-directory.ts";
import { blockPrefix, indexIn } from "./layout.ts";
import { exclusively, inStore, leaseOf, movedPath, type Store, type StoreOptions } from "./store.ts";
import { removeEmptyFiles } from "./take-over.ts";

export interface MovingLeases {
  network: string;
  /** host-local's directory of the network. */
  from: StoreOptions;
  /** The pool's. */
  to: StoreOptions;
  pool: string;
  /** The addresses that go over, and the pool's subnet that has them. */
  spans: readonly { subnet: Prefix; first: Uint8Array; last: Uint8Array }[];
}

export interface MovedLeases {
  /** The addresses that containers keep. */
  kept: string[];
  /** How many host-local will not give out any more, with these. */
  closed: number;
}

/** Throws before it has changed anything when a lease is outside of the spans, or when the pool has given its address to another. */
export function moveLeases(moving: MovingLeases): MovedLeases {
  return inStore(moving.from, undefined, (from) =>
    exclusively(from, () => {
      endEarlierBoot(from);
      return underLockOfGo(from.directory, () => {
        removeEmptyFiles(from);
        return inStore(moving.to, undefined, (to) => exclusively(to, () => moveAll(moving, from, to)));
      });
    }));
}

/** So that none of its calls releases what is being moved. */
function underLockOfGo<T>(directory: string, work: () => T): T {
  const lock = openExistingState(`${directory}/lock`, O_RDONLY, "anybody's");
  if (lock === undefined) return work();
  try {
    lockExclusive(lock.fd, `${directory}/lock`);
    return work();
  } finally {
    closeFile(lock.fd);
  }
}

function moveAll(moving: MovingLeases, from: Store, to: Store): MovedLeases {
  const { network, pool, spans } = moving, closing = closingText(pool);
  endEarlierBoot(to);
  settleAll(to, existingBlocks(to));
  refuseOthers(moving);
  replaceFile(movedPath(from.directory), `${JSON.stringify({ format: 1, network, directory: to.directory })}\n`, {
    mode: 0o600,
    durable: true,
  });
  const kept: string[] = [];
  let closed = 0;
  for (const { subnet, first, last } of spans) {
    for (let at = toBigInt(first); at <= toBigInt(last); at++) {
      const address = fromBigInt(at, first.length), shown = formatAddress(address);
      closed++;
      const text = closeFree(from.directory, address, closing);
      if (text === closing) continue;
      take(to, subnet, address, inPool(text, network));
      replaceFile(`${from.directory}/${shown}`, closing, { mode: 0o600, durable: true });
      kept.push(shown);
    }
  }
  return { kept, closed };
}

/** What the address's file says, which is made where there is none. Go's plugin knows no lock of ours. */
function closeFree(directory: string, address: Uint8Array, closing: string): string {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    if (createLease(directory, address, closing, true)) return closing;
    const text = readLease(directory, address);
    if (text !== undefined && text !== "") return text;
  }
  throw new Error(`${directory}/${formatAddress(address)} comes and goes; repeat the command`);
}

const MOST_ATTEMPTS = 100;

function take(to: Store, subnet: Prefix, address: Uint8Array, text: string): void {
  const block = blockAt(to, blockPrefix(subnet, address), true);
  const lease = { text, tag: leaseOf(leaseOwnerIn(text) ?? { containerId: text }).tag };
  if (claim(to, block, indexIn(block.prefix, address), lease) || readLease(to.directory, address) === text) return;
  throw new Error(`${to.directory}/${formatAddress(address)} has been written meanwhile; repeat the command`);
}

/** What people have reserved by hand stays reserved. */
function inPool(text: string, network: string): string {
  const owner = leaseOwnerIn(text);
  return owner?.ifName === undefined ? text : leaseText({ ...owner, inNetwork: network });
}

function refuseOthers({ from, to, network, pool, spans }: MovingLeases): void {
  for (const address of leasedAddresses(from.directory)) {
    const text = readLease(from.directory, address)!,
      shown = formatAddress(address),
      at = `${from.directory}/${shown}`;
    if (text === closingText(pool)) continue;
    if (!spans.some((span) => isInSpan(span, address))) {
      throw new Error(`${at}: the address is in none of the blocks of pool ${pool} that this host takes`);
    }
    const other = readLease(to.directory, address);
    if (other === undefined || other === "" || other === inPool(text, network)) continue;
    const holder = leaseOwnerIn(other)?.containerId ?? other.slice(0, 80);
    throw new Error(`${at}: ${holder} has the address by pool ${pool}; detach one of the two containers`);
  }
}

function isInSpan({ subnet, first, last }: MovingLeases["spans"][number], address: Uint8Array): boolean {
  if (address.length !== first.length || !contains(subnet, address)) return false;
  return toBigInt(address) >= toBigInt(first) && toBigInt(address) <= toBigInt(last);
}

const CLOSING = "moved to pool ";

/** No owner of a lease: two words are no ID. */
function closingText(pool: string): string {
  return `${CLOSING}${pool}`;
}

/** It is no lease: whose the address is, the pool says. */
export function isMovedAway({ text }: { text: string }): boolean {
  return text.startsWith(CLOSING);
}

/** Undefined when they are where they were. */
function placeOfMoved(directory: string): { network: string; directory: string } | undefined {
  const text = readStateFile(movedPath(directory));
  return text === undefined ? undefined : JSON.parse(text) as { network: string; directory: string };
}

export interface OwnLeases {
  options: StoreOptions;
  owner: LeaseOwner;
}

/** Where an attachment's leases are that host-local gave it before they moved; undefined when they have not. */
export function movedLeases({ directory, report }: StoreOptions, owner: LeaseOwner): OwnLeases | undefined {
  const place = placeOfMoved(directory);
  return place && {
    options: { directory: place.directory, keep: false, quarantineSeconds: 0, report },
    owner: { ...owner, inNetwork: place.network },
  };
}
