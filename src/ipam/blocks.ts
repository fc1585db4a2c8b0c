/**
 * The blocks of a store's index: opening them, making them from the lease files, and bringing them back in line with the
 * lease files after a crash, a reboot, damage, or the removal of a lease file by hand.
 */
import { bootId } from "../ffi/boot.ts";
import {
  createFile,
  namesIn,
  O_RDWR,
  removeFile,
  unlessFailing,
  whileOpen,
  writeAll,
  writerId,
} from "../ffi/files.ts";
import { check, cString, libc } from "../ffi/libc.ts";
import { allocateOnDisk, mapShared } from "../ffi/memory.ts";
import { openExistingState, type OpenState, UntrustedState } from "../process/state-file.ts";
import { contains, formatAddress, type Prefix } from "../net/address.ts";
import { hasGoLock, leasedAddresses, leaseOwnerIn, readLease, removeLease } from "./go-directory.ts";
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
import { exclusively, indexDirectory, type Store, tagOf } from "./store.ts";

/** The block, if it exists; with `create`, makes it if not. Replaces outdated and damaged blocks. */
export function blockAt(store: Store, prefix: Prefix, create: true): Block;
export function blockAt(store: Store, prefix: Prefix, create: boolean): Block | undefined;
export function blockAt(store: Store, prefix: Prefix, create: boolean): Block | undefined {
  const name = blockName(prefix);
  const known = store.blocks.get(name);
  if (known !== undefined) return known;
  const opened = openBlock(store, prefix, name);
  if (opened.state === "current") return opened.block;
  if (opened.state === "missing" && !create) return undefined;
  return exclusively(store, () => {
    // Another process may have done the work while this one waited.
    const { state, block } = openBlock(store, prefix, name);
    if (state === "current") return block;
    if (state === "damaged") setAside(store, name);
    endEarlierBoot(store);
    if (create || state === "damaged") makeBlock(store, prefix, name, store.keep);
    return openBlock(store, prefix, name).block;
  });
}

/** The existing blocks, or those inside `subnet`. */
export function existingBlocks(store: Store, subnet?: Prefix): Block[] {
  const prefixes = blockPrefixes(store, subnet);
  // In two rounds: replacing a block makes blocks that were opened before outdated.
  for (const prefix of prefixes) blockAt(store, prefix, false);
  const blocks: Block[] = [];
  for (const prefix of prefixes) {
    const block = blockAt(store, prefix, false);
    if (block !== undefined) blocks.push(block);
  }
  return blocks;
}

function blockPrefixes({ directory }: Store, subnet?: Prefix): Prefix[] {
  const prefixes: Prefix[] = [];
  for (const name of namesIn(indexDirectory(directory))) {
    const prefix = blockPrefixOf(name);
    if (prefix === undefined) continue;
    if (subnet === undefined || contains(subnet, prefix.bytes)) prefixes.push(prefix);
  }
  return prefixes;
}

function blockPath({ directory }: Store, name: string): string {
  return `${indexDirectory(directory)}/${name}`;
}

type Opened =
  | { state: "current" | "earlier boot"; block: Block }
  | { state: "missing" | "damaged"; block?: undefined };

function openBlock(store: Store, prefix: Prefix, name: string): Opened {
  const path = blockPath(store, name);
  let file: OpenState | undefined;
  try {
    file = openExistingState(path, O_RDWR);
  } catch (error) {
    if (error instanceof UntrustedState) return { state: "damaged" };
    throw error;
  }
  if (file === undefined) return { state: "missing" };
  const { fd, size } = file, sizeBytes = blockSizeBytes(prefix);
  return whileOpen(fd, (): Opened => {
    if (size !== sizeBytes) return { state: "damaged" };
    const buffer = mapShared(fd, sizeBytes, path);
    store.mappings.push(buffer);
    const block = viewBlock(prefix, buffer);
    const state = judgeHeader(block, bootIdBytes());
    if (state === "damaged") return { state };
    if (state === "current") store.blocks.set(name, block);
    return { state, block };
  });
}

function bootIdBytes(): Uint8Array {
  return Uint8Array.fromHex(bootId().replaceAll("-", ""));
}

/** Makes the block from the lease files, and renames it into place. Only under the exclusive lock. */
function makeBlock(store: Store, prefix: Prefix, name: string, keep: boolean): void {
  const block = emptyBlock(prefix, bootIdBytes());
  setKeepsLeases(block, keep);
  for (const address of leasedAddresses(store.directory)) {
    if (contains(prefix, address)) settle(store, block, indexIn(prefix, address));
  }
  const path = blockPath(store, name);
  const unfinished = `${path}.new`;
  unlessFailing(unfinished, createFile(unfinished, O_RDWR), (fd) => {
    allocateOnDisk(fd, block.buffer.byteLength, unfinished);
    writeAll(fd, new Uint8Array(block.buffer), unfinished);
    check("rename", libc.rename(cString(unfinished), cString(path)), path);
  });
  removeEmptyBlocks(store, name);
}

/** Makes every block again. Only under the exclusive lock. */
export function remakeBlocks(store: Store): void {
  for (const block of existingBlocks(store)) {
    makeBlock(store, block.prefix, blockName(block.prefix), keepsLeases(block));
  }
  store.blocks.clear();
}

/** With more blocks than this, empty ones are removed. */
const SPARE_BLOCKS = 16;

/** The round robin of a large range moves from block to block, and configurations change. */
function removeEmptyBlocks(store: Store, exceptFor: string): void {
  const prefixes = blockPrefixes(store);
  if (prefixes.length <= SPARE_BLOCKS) return;
  for (const prefix of prefixes) {
    const name = blockName(prefix);
    if (name === exceptFor) continue;
    const { state, block } = openBlock(store, prefix, name);
    if (state !== "current" || block.slots.some((slot) => slot !== 0)) continue;
    removeFile(blockPath(store, name));
    store.blocks.delete(name);
  }
}

function setAside(store: Store, name: string): void {
  const path = blockPath(store, name), kept = `${path}.bad`;
  store.report(`the lease index ${path} is damaged: it is kept as ${kept} and made again from the lease files`);
  if (libc.rename(cString(path), cString(kept)) === 0) return;
  // One of the two may be a directory.
  check("rename", libc.rename(cString(path), cString(`${path}.${writerId()}.bad`)), path);
}

/**
 * Removes the blocks of earlier boots with their leases, unless leases outlive a reboot. Done before any block is made, so
 * that no lease of this boot is among them. Go's plugin may have made leases in this boot already; where it has been,
 * lease files that the index does not know stay.
 */
export function endEarlierBoot(store: Store): void {
  const outdated: Block[] = [];
  for (const prefix of blockPrefixes(store)) {
    const { state, block } = openBlock(store, prefix, blockName(prefix));
    if (state === "earlier boot") outdated.push(block);
  }
  if (outdated.length === 0) return;
  const addresses = leasedAddresses(store.directory);
  const onlyOurs = !hasGoLock(store.directory);
  for (const block of outdated) {
    const { prefix, slots } = block;
    if (store.keep || keepsLeases(block)) {
      makeBlock(store, prefix, blockName(prefix), true);
      continue;
    }
    for (const address of addresses) {
      if (!contains(prefix, address)) continue;
      const text = readLease(store.directory, address);
      // A file that names no attachment was not made by ADD: somebody reserved the address by hand.
      if (text === undefined || leaseOwnerIn(text)?.ifName === undefined) continue;
      if (onlyOurs || slots[indexIn(prefix, address)] === tagOf(text)) removeLease(store.directory, address, text);
    }
    removeFile(blockPath(store, blockName(prefix)));
  }
}

/**
 * Brings the index of one address in line with its lease file. Only under the exclusive lock: then no process of ours is
 * writing an empty file, so it was left by a process that died, and is removed.
 */
export function settle(store: Store, block: Block, index: number): void {
  const address = addressAt(block.prefix, index);
  let text = readLease(store.directory, address);
  if (text === "") text = removeEmpty(store, address);
  block.slots[index] = text === undefined ? 0 : tagOf(text);
  if (block.times[index] === CLAIMING) block.times[index] = 0;
}

/** Removes an empty lease file. Returns its content if Go's plugin was just writing it. */
export function removeEmpty(store: Store, address: Uint8Array): string | undefined {
  const text = removeLease(store.directory, address, "");
  if (text !== "") return text;
  store.report(`removed ${store.directory}/${formatAddress(address)}: it is empty, left by a process that died`);
  return undefined;
}

/**
 * Settles every address whose slot and lease file disagree: the file was removed by hand, or a process died. Only under
 * the exclusive lock.
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
