/**
 * The lease store of one network: the lease files (go-directory.ts), and beside them, in `.patchbay`, an index that
 * makes finding a free address, and an owner's addresses, cost the same with ten leases and with sixty thousand.
 *
 *     .patchbay/locks            never written; its bytes are locked (fcntl(2), open file description locks)
 *     .patchbay/10.88.0.0-16     the index of one block of addresses (layout.ts)
 *
 * Two rules keep index and files together. Who works on the network shares byte 0; who makes, replaces or repairs
 * blocks has it alone. And who adds or releases leases of an owner holds the byte numbered by the owner's tag, so that
 * two processes never work for one owner at once. The kernel drops the locks of a process that dies: what it had begun
 * is then anybody's to finish. docs/lease-store.md has the whole argument.
 */
import { EACCES, EISDIR, ELOOP, ENOENT, EROFS, isErrno } from "../ffi/errno.ts";
import {
  closeFile,
  identify,
  listDirectory,
  makeDirectories,
  O_CREAT,
  O_NOFOLLOW,
  O_RDWR,
  O_TRUNC,
  openFile,
  readTextFile,
  removeFile,
  syncDirectory,
  writeAll,
} from "../ffi/files.ts";
import { check, cString, libc } from "../ffi/libc.ts";
import { allocateOnDisk, mapShared, unlock, unmap, waitForLock } from "../ffi/mapped-file.ts";
import { contains, formatAddress, type Prefix } from "../net/address.ts";
import {
  createLease,
  findEverywhere,
  hasGoLock,
  leasedAddresses,
  type LeaseOwner,
  leaseText,
  ownerOf,
  readLease,
  removeFound,
  removeLease,
} from "./go-directory.ts";
import {
  addressAt,
  type Block,
  blockName,
  blockPrefixOf,
  blockSizeBytes,
  CLAIMING,
  emptyBlock,
  indexIn,
  judgeHeader,
  keepsLeases,
  setKeepsLeases,
  viewBlock,
} from "./layout.ts";

export interface StoreOptions {
  /** `<dataDir>/<network>` */
  readonly directory: string;
  /** Whether leases outlive a reboot; then they are also made durable. */
  readonly keep: boolean;
  /** Takes one line for the operator. */
  report(note: string): void;
}

/** The store while one process works on it: see `inStore`. */
export interface Store extends StoreOptions {
  readonly locksFd: number;
  alone: boolean;
  readonly blocks: Map<string, Block>;
  readonly mappings: ArrayBuffer[];
}

/** Whose lease it is: the text of its file, and the number that stands for it in the index and among the locks. */
export interface Lease {
  readonly text: string;
  readonly tag: number;
}

export function leaseOf(owner: LeaseOwner): Lease {
  const text = leaseText(owner);
  return { text, tag: tagOf(text) };
}

/** Never 0, which stands for a free address. */
function tagOf(text: string): number {
  return (Bun.hash.xxHash32(text) | 0) || 1;
}

const IN_USE = 0;

/** Works on the store, which is made if need be. `lease` is the one to be added. */
export function inStore<T>(options: StoreOptions, lease: Lease, work: (store: Store) => T): T {
  return withLocks(options, openLocks(options.directory, true)!, lease, work);
}

/** Works on the store if there is one and it can be written to; otherwise on nothing but the lease files. */
export function inExistingStore<T>(
  options: StoreOptions,
  lease: Lease | undefined,
  work: (store: Store | undefined) => T,
): T {
  const locksFd = openLocks(options.directory, false);
  return locksFd === undefined ? work(undefined) : withLocks(options, locksFd, lease, work);
}

function withLocks<T>(
  options: StoreOptions,
  locksFd: number,
  lease: Lease | undefined,
  work: (store: Store) => T,
): T {
  const store: Store = { ...options, locksFd, alone: false, blocks: new Map(), mappings: [] };
  try {
    // In this order: who waits for an owner must not keep others from having the store alone.
    if (lease !== undefined) waitForLock(locksFd, lease.tag >>> 0, "exclude");
    waitForLock(locksFd, IN_USE, "share");
    return work(store);
  } finally {
    store.mappings.forEach(unmap);
    closeFile(locksFd);
  }
}

function indexDirectory(directory: string): string {
  return `${directory}/.patchbay`;
}

function openLocks(directory: string, create: boolean): number | undefined {
  const path = `${indexDirectory(directory)}/locks`;
  try {
    return openFile(path, O_RDWR | O_NOFOLLOW | (create ? O_CREAT : 0));
  } catch (error) {
    if (!create && isErrno(error, ENOENT, EROFS, EACCES)) return undefined;
    if (!isErrno(error, ENOENT)) throw error;
    makeDirectories(directory, 0o755);
    makeDirectories(indexDirectory(directory), 0o700);
    return openFile(path, O_RDWR | O_NOFOLLOW | O_CREAT);
  }
}

/** Waits until nobody else works on the network. Blocks from before may be out of date then: ask for them again. */
export function alone<T>(store: Store, work: () => T): T {
  if (store.alone) return work();
  // Two that share the byte and wait to have it alone would wait for each other: hence the moment without it.
  unlock(store.locksFd, IN_USE);
  waitForLock(store.locksFd, IN_USE, "exclude");
  store.blocks.clear();
  store.alone = true;
  try {
    return work();
  } finally {
    store.alone = false;
    waitForLock(store.locksFd, IN_USE, "share");
  }
}

/** The block, if it exists; or in any case, with `create`. Old and damaged ones are dealt with on the way. */
export function blockAt(store: Store, prefix: Prefix, create: true): Block;
export function blockAt(store: Store, prefix: Prefix, create: boolean): Block | undefined;
export function blockAt(store: Store, prefix: Prefix, create: boolean): Block | undefined {
  const known = store.blocks.get(blockName(prefix));
  if (known !== undefined) return known;
  const opened = openBlock(store, prefix);
  if (opened.state === "current") return opened.block;
  if (opened.state === "missing" && !create) return undefined;
  return alone(store, () => {
    const { state, block } = openBlock(store, prefix);
    if (state === "current") return block;
    if (state === "earlier boot") endEarlierBoot(store);
    if (state === "damaged") setAside(store, prefix);
    if (state !== "damaged" && !create) return undefined;
    makeBlock(store, prefix);
    return openBlock(store, prefix).block;
  });
}

/** The blocks that exist. */
export function existingBlocks(store: Store): Block[] {
  const prefixes = blockPrefixes(store);
  // The first pass replaces what is old or damaged, which puts blocks already opened out of date.
  for (const prefix of prefixes) blockAt(store, prefix, false);
  return prefixes.map((prefix) => blockAt(store, prefix, false)).filter((block) => block !== undefined);
}

function blockPrefixes({ directory }: Store): Prefix[] {
  return listDirectory(indexDirectory(directory)).map(blockPrefixOf).filter((prefix) => prefix !== undefined);
}

function blockPath({ directory }: Store, prefix: Prefix): string {
  return `${indexDirectory(directory)}/${blockName(prefix)}`;
}

type Opened =
  | { state: "current" | "earlier boot"; block: Block }
  | { state: "missing" | "damaged"; block?: undefined };

function openBlock(store: Store, prefix: Prefix): Opened {
  const path = blockPath(store, prefix);
  let fd: number;
  try {
    fd = openFile(path, O_RDWR | O_NOFOLLOW);
  } catch (error) {
    if (isErrno(error, ENOENT)) return { state: "missing" };
    if (isErrno(error, ELOOP, EISDIR)) return { state: "damaged" };
    throw error;
  }
  try {
    const sizeBytes = blockSizeBytes(prefix);
    if (identify(fd).size !== sizeBytes) return { state: "damaged" };
    const buffer = mapShared(fd, sizeBytes, path);
    store.mappings.push(buffer);
    const block = viewBlock(prefix, buffer);
    const state = judgeHeader(block, bootId());
    if (state === "damaged") return { state };
    if (state === "current") store.blocks.set(blockName(prefix), block);
    return { state, block };
  } finally {
    closeFile(fd);
  }
}

let bootIdBytes: Uint8Array | undefined;

function bootId(): Uint8Array {
  return bootIdBytes ??= Uint8Array.fromHex(readTextFile("/proc/sys/kernel/random/boot_id")!.replace(/[-\n]/g, ""));
}

/** Makes the block from the lease files. Only while alone; no process sees it half-made. */
function makeBlock(store: Store, prefix: Prefix): void {
  const block = emptyBlock(prefix, bootId());
  setKeepsLeases(block, store.keep);
  for (const address of leasedAddresses(store.directory)) {
    if (contains(prefix, address)) settle(store, block, indexIn(prefix, address));
  }
  const path = blockPath(store, prefix);
  const unfinished = `${path}.new`;
  const fd = openFile(unfinished, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW);
  try {
    allocateOnDisk(fd, block.buffer.byteLength, unfinished);
    writeAll(fd, new Uint8Array(block.buffer), unfinished);
    check("rename", libc.rename(cString(unfinished), cString(path)), path);
  } catch (error) {
    removeFile(unfinished);
    throw error;
  } finally {
    closeFile(fd);
  }
  dropEmptyBlocks(store, prefix);
}

/** A range larger than a block wanders from one to the next, and configurations change: what is empty can go. */
function dropEmptyBlocks(store: Store, exceptFor: Prefix): void {
  for (const prefix of blockPrefixes(store)) {
    if (blockName(prefix) === blockName(exceptFor)) continue;
    const { state, block } = openBlock(store, prefix);
    if (state === "current" && block.slots.every((slot) => slot === 0)) {
      removeFile(blockPath(store, prefix));
      store.blocks.delete(blockName(prefix));
    }
  }
}

function setAside(store: Store, prefix: Prefix): void {
  const path = blockPath(store, prefix);
  store.report(`the lease index ${path} is damaged: it is kept as ${path}.bad and made again from the lease files`);
  check("rename", libc.rename(cString(path), cString(`${path}.bad`)), path);
}

/**
 * Frees the leases of blocks that another boot left, unless they are to be kept, and removes the blocks. Where Go's
 * plugin works too, files that the index did not know of may be its leases of this boot, and stay.
 */
function endEarlierBoot(store: Store): void {
  const addresses = leasedAddresses(store.directory);
  const onlyOurs = !hasGoLock(store.directory);
  for (const prefix of blockPrefixes(store)) {
    const { state, block } = openBlock(store, prefix);
    if (state !== "earlier boot") continue;
    for (const address of store.keep || keepsLeases(block) ? [] : addresses) {
      if (!contains(prefix, address)) continue;
      const text = readLease(store.directory, address);
      // A file that does not name an attachment was not made by ADD: somebody reserved the address by hand.
      if (text === undefined || ownerOf(text)?.ifName === undefined) continue;
      if (onlyOurs || block.slots[indexIn(prefix, address)] === tagOf(text)) {
        removeLease(store.directory, address, text);
      }
    }
    removeFile(blockPath(store, prefix));
  }
}

/**
 * Brings the index of one address in line with its file. Only while alone: then an empty file is not one that somebody
 * is just writing, but what a process left that died over it, and goes.
 */
export function settle(store: Store, block: Block, index: number): void {
  const address = addressAt(block.prefix, index);
  let text = readLease(store.directory, address);
  if (text === "") text = removeEmpty(store, address);
  block.slots[index] = text === undefined ? 0 : tagOf(text);
  if (block.times[index] === CLAIMING) block.times[index] = 0;
}

/** Answers what the file says after all, when it was Go's plugin that was writing it. */
function removeEmpty(store: Store, address: Uint8Array): string | undefined {
  const text = removeLease(store.directory, address, "");
  if (text !== "") return text;
  store.report(`removed ${store.directory}/${formatAddress(address)}: it is empty, left by a process that died`);
  return undefined;
}

/**
 * Frees what is taken in the index alone: addresses whose file was removed by hand, claims of processes that died.
 * Only while alone.
 */
export function settleAll(store: Store, blocks: readonly Block[]): void {
  const addresses = leasedAddresses(store.directory);
  const doubtful = tagOf("");
  for (const block of blocks) {
    const { prefix, slots, times } = block;
    const hasFile = new Uint8Array(slots.length);
    for (const address of addresses) if (contains(prefix, address)) hasFile[indexIn(prefix, address)] = 1;
    for (let index = 0; index < slots.length; index++) {
      const agrees = (slots[index] !== 0) === (hasFile[index] === 1);
      if (!agrees || slots[index] === doubtful || times[index] === CLAIMING) settle(store, block, index);
    }
  }
}

/**
 * Takes the address for the lease, or answers false: somebody has it. Of two processes one wins the exchange, and of
 * two programs one makes the file. Throws with nothing left behind.
 */
export function claim(store: Store, block: Block, index: number, lease: Lease): boolean {
  const { slots, times, prefix } = block;
  if (Atomics.compareExchange(slots, index, 0, lease.tag) !== 0) return false;
  const address = addressAt(prefix, index);
  const releasedAt = Atomics.exchange(times, index, CLAIMING);
  let holder: string | undefined;
  try {
    if (createLease(store.directory, address, lease.text, store.keep)) {
      Atomics.store(times, index, 0);
      return true;
    }
    holder = readLease(store.directory, address);
  } catch (error) {
    Atomics.store(times, index, releasedAt);
    Atomics.store(slots, index, 0);
    throw error;
  }
  // The file is of Go's plugin, of a person, or of a time when the network was divided differently.
  Atomics.store(times, index, 0);
  Atomics.store(slots, index, holder === undefined ? 0 : tagOf(holder));
  return false;
}

/** Frees the address if it is the lease's. The file goes first: without it, the rest is for anybody to finish. */
export function unclaim(store: Store, block: Block, index: number, lease: Lease): boolean {
  const address = addressAt(block.prefix, index);
  let found = removeLease(store.directory, address, lease.text);
  if (found === "") found = alone(store, () => removeEmpty(store, address));
  if (found === lease.text && keepsLeases(block)) syncDirectory(store.directory);
  const isFree = found === undefined || found === lease.text;
  if (isFree) Atomics.store(block.times, index, monotonicSeconds());
  Atomics.compareExchange(block.slots, index, lease.tag, isFree ? 0 : tagOf(found!));
  return found === lease.text;
}

/** What times of release are measured by. */
export function monotonicSeconds(): number {
  return process.hrtime()[0];
}

/** Where in the block the lease's tag stands. Other leases may have the same: what counts is the file. */
export function* indexesOf({ slots }: Block, { tag }: Lease): Generator<number> {
  for (let index = slots.indexOf(tag); index >= 0; index = slots.indexOf(tag, index + 1)) yield index;
}

/**
 * Releases every lease of the owner, and answers how many there were. `hints` are addresses it may have. In the end
 * the lease files decide: when the index knows nothing of the owner, they are looked through, as Go does each time.
 */
export function release(options: StoreOptions, owner: LeaseOwner, hints: readonly Uint8Array[]): number {
  const lease = leaseOf(owner);
  return inExistingStore(options, lease, (store) => {
    const { directory } = options;
    const blocks = store === undefined ? [] : existingBlocks(store);
    // Very old lease files name the container alone; they are its leases when none names the interface as well.
    const leases = owner.ifName === undefined ? [lease] : [lease, leaseOf({ containerId: owner.containerId })];
    for (const each of leases) {
      let released = 0;
      for (const block of blocks) {
        for (const index of indexesOf(block, each)) if (unclaim(store!, block, index, each)) released++;
      }
      for (const hint of hints) if (removeLease(directory, hint, each.text) === each.text) released++;
      if (released > 0) return released;
    }
    const goWasHere = hasGoLock(directory);
    const isOthers = (address: Uint8Array) => {
      const block = goWasHere ? undefined : blocks.find(({ prefix }) => contains(prefix, address));
      const slot = block?.slots[indexIn(block.prefix, address)] ?? 0;
      return slot !== 0 && leases.every(({ tag }) => tag !== slot);
    };
    const found = findEverywhere(directory, leases.map(({ text }) => text), isOthers);
    for (const { text } of leases) {
      const removed = found.filter((each) => each.text === text && removeFound(directory, each)).length;
      if (removed > 0) return removed;
    }
    return 0;
  });
}

/** Whether the owner has a lease. Looks where `release` would, and changes nothing. */
export function holdsLease({ directory }: StoreOptions, owner: LeaseOwner, hints: readonly Uint8Array[]): boolean {
  const texts = [leaseText(owner), owner.containerId];
  const isOwners = (address: Uint8Array) => texts.includes(readLease(directory, address) ?? "");
  return hints.some(isOwners) || findEverywhere(directory, texts, () => false).length > 0;
}

/** Releases the leases of attachments that are not valid; leases that name no interface are left alone. */
export function releaseInvalid(
  options: StoreOptions,
  isValid: (owner: { containerId: string; ifName: string }) => boolean,
): void {
  const { directory } = options;
  inExistingStore(options, undefined, (store) => {
    if (store === undefined) return collect([]);
    alone(store, () => {
      const blocks = existingBlocks(store);
      collect(blocks);
      settleAll(store, blocks);
    });

    function collect(blocks: readonly Block[]): void {
      for (const address of leasedAddresses(directory)) {
        const text = readLease(directory, address) ?? "";
        const { containerId, ifName } = ownerOf(text) ?? {};
        if (containerId === undefined || ifName === undefined || isValid({ containerId, ifName })) continue;
        const lease = { text, tag: tagOf(text) };
        const block = blocks.find(({ prefix }) => contains(prefix, address));
        if (block === undefined) removeLease(directory, address, text);
        else unclaim(store!, block, indexIn(block.prefix, address), lease);
      }
    }
  });
}
