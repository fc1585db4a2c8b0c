/**
 * What the agent keeps: over boots, who this host is and which blocks it has; until the next boot, which of them have
 * ripened. Each file is replaced whole, so that a kill leaves the old one or the new one.
 */
import { isObject } from "../../cni/json.ts";
import type { BootNotes, KeptState } from "../../cluster/effects.ts";
import { nameIn, type PoolRecord, type Stored } from "../../cluster/records.ts";
import {
  isWish,
  servedFrom,
  servedPath,
  type ServedPool,
  servedText,
  WISH,
  wishPath,
} from "../../cluster/served-file.ts";
import { withoutSpareSlashes } from "../../ipam/go-directory.ts";
import { makeDirectories, namesIn, removeFile, replaceFile } from "../../ffi/files.ts";
import { judgeStateDirectory, readStateFile, UntrustedState } from "../../process/state-file.ts";
import { errorText, undefinedOnError } from "../../cni/error.ts";

/** A pool as this host has seen it last, for as long as it has blocks of it. */
export interface KeptPool {
  name: string;
  birth: string;
  value: PoolRecord;
}

export function keptPool({ key, birth, value }: Stored<PoolRecord>): KeptPool {
  return { name: nameIn(key), birth, value };
}

const NOTHING_HELD: KeptState = { generation: 0, boots: [], grants: [], seen: 0 };
const NOTHING_NOTED: BootNotes = { hasJoined: false, ripe: [] };
const FORMAT = 1;

export class NodeFiles {
  private readonly keptIn: string;

  /** `keptIn`: /var/lib/patchbay; `stateDirectory`: /run/patchbay. They need not be there for who only reads. */
  constructor(keptIn: string, readonly stateDirectory: string) {
    if (!keptIn.startsWith("/")) throw new Error(`--data-dir ${keptIn}: it must begin at "/"`);
    this.keptIn = withoutSpareSlashes(keptIn);
    this.directories.forEach((directory) => judgeStateDirectory(directory));
  }

  /** For the agent. */
  makeDirectories(): void {
    for (const directory of this.directories) {
      makeDirectories(directory, 0o700);
      judgeStateDirectory(directory);
    }
  }

  private get directories(): string[] {
    return [this.keptIn, this.own, this.stateDirectory];
  }

  private get own(): string {
    return `${this.keptIn}/node`;
  }

  /** With a directory of leases for each pool. */
  get leases(): string {
    return `${this.keptIn}/pools`;
  }

  readHeld(): KeptState {
    const found = this.read(`${this.own}/state.json`);
    if (found === undefined) return NOTHING_HELD;
    const { generation, boots, grants, seen, wipedIn } = found as unknown as KeptState;
    if (typeof generation === "number" && Array.isArray(boots) && Array.isArray(grants)) {
      return { generation, boots, grants, seen: seen ?? 0, wipedIn };
    }
    throw unreadable(`${this.own}/state.json`, "it is no state of a node");
  }

  saveHeld(held: KeptState): void {
    this.write(`${this.own}/state.json`, held, true);
  }

  readNotes(): BootNotes {
    const found = this.read(`${this.stateDirectory}/node~boot`) as unknown as BootNotes | undefined;
    return found === undefined ? NOTHING_NOTED : { hasJoined: found.hasJoined === true, ripe: textsIn(found.ripe) };
  }

  saveNotes(notes: BootNotes): void {
    this.write(`${this.stateDirectory}/node~boot`, notes, false);
  }

  /** Seconds after the boot at which `sync` had done all that was due; undefined once an agent has begun to stay. */
  readSync(): number | undefined {
    const at = this.read(this.synced)?.["at"];
    return typeof at === "number" ? at : undefined;
  }

  saveSync(at: number): void {
    this.write(this.synced, { at }, false);
  }

  forgetSync(): void {
    removeFile(this.synced);
  }

  private get synced(): string {
    return `${this.stateDirectory}/node~synced`;
  }

  /** This host's part in a store ends: in another, it begins anew. Leases stay. */
  forgetStore(): void {
    this.saveNotes(NOTHING_NOTED);
    this.saveHeld(NOTHING_HELD);
    this.savePools([]);
  }

  /** By block. */
  readForeign(): Record<string, readonly string[]> {
    const found = this.read(`${this.stateDirectory}/node~foreign`)?.["found"];
    if (!isObject(found)) return {};
    return Object.fromEntries(Object.entries(found).map(([key, addresses]) => [key, textsIn(addresses)]));
  }

  saveForeign(found: Record<string, readonly string[]>): void {
    this.write(`${this.stateDirectory}/node~foreign`, { found }, false);
  }

  readPools(): KeptPool[] {
    const found = this.read(`${this.own}/pools.json`)?.["pools"];
    return Array.isArray(found) ? found as KeptPool[] : [];
  }

  savePools(pools: readonly KeptPool[]): void {
    this.write(`${this.own}/pools.json`, { pools }, true);
  }

  readServed(pool: string): ServedPool | undefined {
    try {
      const text = readStateFile(servedPath(this.stateDirectory, pool));
      return text === undefined ? undefined : servedFrom(text);
    } catch (error) {
      if (error instanceof UntrustedState) throw error;
      return undefined;
    }
  }

  /** Pools that ADD has a file of. */
  servedPools(): string[] {
    return namesIn(this.stateDirectory).filter((name) => /^pool~[^~]+$/.test(name) && !name.endsWith(".tmp"))
      .map((name) => name.slice("pool~".length));
  }

  writeServed(served: ServedPool): void {
    const text = servedText({ ...served, leases: this.leases });
    replaceFile(servedPath(this.stateDirectory, served.pool), text, { mode: 0o600 });
  }

  removeServed(pool: string): void {
    removeFile(servedPath(this.stateDirectory, pool));
    this.removeWish(pool);
  }

  removeWish(pool: string): void {
    removeFile(wishPath(this.stateDirectory, pool));
  }

  wishedPools(): string[] {
    return namesIn(this.stateDirectory).filter(isWish).map((name) => name.slice(WISH.length));
  }

  /** Another one each time that ADD wishes. It may be lost. */
  wishOf(pool: string): string | undefined {
    return undefinedOnError(() => readStateFile(wishPath(this.stateDirectory, pool)));
  }

  private read(path: string): Record<string, unknown> | undefined {
    const text = readStateFile(path);
    if (text === undefined) return undefined;
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw unreadable(path, errorText(error));
    }
    if (!isObject(value)) throw unreadable(path, "it is no object");
    if (value["format"] !== FORMAT) throw unreadable(path, `its format is ${JSON.stringify(value["format"])}`);
    return value;
  }

  private write(path: string, value: object, durable: boolean): void {
    replaceFile(path, `${JSON.stringify({ format: FORMAT, ...value })}\n`, { mode: 0o600, durable });
  }
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function unreadable(path: string, why: string): Error {
  return new Error(
    `${path} cannot be read: ${why}; bring it back, or remove it: then this host takes its blocks from the store, and ` +
      "gives out none of them before the next boot",
  );
}
