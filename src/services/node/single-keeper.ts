/** Addresses that an ADD asks for: claimed when it does, and single ones given back when their container has gone. */
import { claimThis, releaseBlock } from "../../cluster/blocks.ts";
import { type Grant, readStored } from "../../cluster/effects.ts";
import { blockWith, isSingle, plainBlockWith } from "../../cluster/pool.ts";
import { blockKey, type BlockRecord, indexOf } from "../../cluster/records.ts";
import { parseAddress } from "../../net/address.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import type { NodeAtWork } from "./node-at-work.ts";
import type { NodePool } from "./pools.ts";
import type { Wishes } from "./wishes.ts";

/** Who has asked for one asks again soon. */
const UNUSED_S = 60;
/** What a person has changed meanwhile counts before a claim. */
export const FRESH_S = 2;

export function isOfSingle({ key }: Grant): boolean {
  return isSingle(indexOf(key));
}

export class SingleKeeper {
  /** Who has an address that an ADD has asked for, by pool. */
  readonly ofOthers = new Map<string, Map<string, string>>();
  version = 0;
  private readonly usedOnce = new Set<string>();
  private readonly since = new Map<string, number>();

  constructor(
    private readonly agent: NodeAtWork,
    private readonly wishes: Wishes,
    private readonly say: (text: string) => void,
  ) {}

  async look(pool: NodePool, own: readonly Grant[], used: ReadonlyMap<string, number>): Promise<void> {
    const { node, driver } = this.agent, now = preciseSecondsSinceBoot(), isDraining = node.standing === "draining";
    for (const grant of own.filter(isOfSingle)) {
      const { key } = grant;
      if (!this.since.has(key)) this.since.set(key, now);
      if (used.has(key)) this.usedOnce.add(key);
      const isClosing = isDraining || grant.state === "closing" || driver.going.get(pool.name)?.has(key) === true;
      const isUnwanted = this.usedOnce.has(key) || (pool.obstacle !== undefined && !pool.isUnclear) ||
        now - this.since.get(key)! > UNUSED_S;
      // With containers it is closed at most, and once.
      const isDue = used.has(key) ? isClosing && grant.state === "held" : isClosing || isUnwanted;
      if (!isDue || !node.notes.ripe.includes(grant.claim)) continue;
      if (!(await driver.run(releaseBlock(node, grant)))) continue;
      this.say(`gave ${key} back`);
      this.since.delete(key);
      this.usedOnce.delete(key);
    }
    await this.claim(pool, own);
  }

  /** Who has the block around a single address may have given it out before it became one. */
  private async ownerAround(pool: NodePool, address: Uint8Array): Promise<{ owner: string } | undefined> {
    const { node, driver } = this.agent, index = plainBlockWith(pool.pool, address);
    if (index === undefined) return undefined;
    const found = await driver.run(readStored<BlockRecord>(blockKey(pool.name, index)));
    const owner = found?.value.owner?.node;
    return owner === undefined || owner === node.self.node ? undefined : { owner };
  }

  /** A block that has the address, where it is not a single one: whoever wants an address of it gets it. */
  private async claim({ name, birth }: NodePool, own: readonly Grant[]): Promise<void> {
    const { node, driver } = this.agent, wish = this.wishes.of(name);
    const address = wish === undefined || wish === "any" ? undefined : parseAddress(wish);
    if (address === undefined) return;
    // Before it is tried: a record that is none would be met again and again.
    this.wishes.settle(name);
    await this.agent.refreshPools(FRESH_S);
    const pool = this.agent.pools.find((each) => each.name === name);
    if (pool?.birth !== birth) return;
    const index = blockWith(pool.pool, address);
    const hasMost = own.filter((grant) => !isOfSingle(grant)).length >= pool.pool.mostBlocks;
    if (index === undefined || (hasMost && !isSingle(index)) || pool.obstacle !== undefined) return;
    const around = isSingle(index) ? await this.ownerAround(pool, address) : undefined;
    const claimed = around ?? await driver.run(claimThis(node, pool, index)),
      others = new Map<string, string>();
    this.ofOthers.set(pool.name, others);
    this.version++;
    if (claimed === true) this.say(`claimed block/${pool.name}.${index}, which is ${wish}`);
    else if (claimed !== undefined && claimed.owner !== node.self.node) others.set(wish!, claimed.owner);
  }
}
