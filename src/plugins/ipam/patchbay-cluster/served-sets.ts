/** What this host serves of a pool, as sets of ranges. */
import {
  type PoolExtent,
  type ServedFile,
  servedFrom,
  servedPath,
  surroundings,
} from "../../../cluster/served-file.ts";
import type { Range, RangeSet } from "../../../ipam/range.ts";
import { compareAddresses, parsePrefix, type Prefix } from "../../../net/address.ts";
import { stateDirectory } from "../../../process/state-directory.ts";
import { judgeStateDirectory, readStateFile } from "../../../process/state-file.ts";

export interface Served {
  file: ServedFile;
  /** One for each family of the pool; each is empty without a block. */
  sets: RangeSet[];
}

/** A thousand blocks of two families are a tenth of it. */
const LONGEST_BYTES = 1 << 20;

/** Undefined when nothing has been served since the boot. Throws when what is there is not to be believed or understood. */
export function readServed(pool: string): Served | undefined {
  const directory = stateDirectory();
  if (!judgeStateDirectory(directory)) return undefined;
  const text = readStateFile(servedPath(directory, pool), "own", LONGEST_BYTES);
  if (text === undefined) return undefined;
  const file = servedFrom(text), sets: RangeSet[] = [];
  if (file.pool !== pool) throw new Error(`it is of pool "${file.pool}"`);
  for (let family = 0; family < file.spans.length; family++) {
    sets.push(new ServedSet(file.spans[family]!, file.extents[family]!));
  }
  return { file, sets };
}

/** Ranges that are made when somebody asks for them: a new process would need milliseconds for a thousand. */
class ServedSet implements RangeSet {
  readonly length: number;
  private readonly bytes: Uint8Array;
  private readonly pool: Prefix;
  private readonly made: Range[] = [];

  constructor(hex: string, private readonly extent: PoolExtent) {
    this.bytes = Uint8Array.fromHex(hex);
    this.pool = parsePrefix(extent.subnet)!;
    this.length = this.bytes.length / (2 * this.width);
  }

  private get width(): number {
    return this.pool.bytes.length;
  }

  at(index: number): Range | undefined {
    if (index < 0 || index >= this.length) return undefined;
    return this.made[index] ??= this.rangeAt(index);
  }

  private rangeAt(index: number): Range {
    const start = this.addressAt(2 * index), end = this.addressAt(2 * index + 1);
    return { start, end, within: this.pool, ...surroundings(start, this.extent, this.pool) };
  }

  private addressAt(position: number): Uint8Array {
    return this.bytes.slice(position * this.width, (position + 1) * this.width);
  }

  /** They are in order. */
  indexWith(address: Uint8Array): number {
    if (address.length !== this.width) return -1;
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareAddresses(this.addressAt(2 * middle), address) <= 0) low = middle + 1;
      else high = middle;
    }
    const found = this.at(low - 1);
    return found !== undefined && compareAddresses(address, found.end) <= 0 ? low - 1 : -1;
  }
}
