/** How many blocks this node has of each pool: claimed ahead or when ADD wishes, served when they are ripe, given back when they are empty. */
import { claimBlock, releaseBlock, ripenBlock } from "../../cluster/blocks.ts";
import type { Grant } from "../../cluster/effects.ts";
import type { ClusterNode } from "../../cluster/node.ts";
import { indexOf, poolOf } from "../../cluster/records.ts";
import { countServed } from "../../cluster/served.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { newClaim, type ProtocolDriver } from "./driving.ts";
import type { NodeFiles } from "./files.ts";
import type { NodePool } from "./pools.ts";
import { obstacleOf } from "./serving.ts";

/** A block that containers have just gone from is needed again soon. */
const IDLE_S = 60;
/** Where the store had nothing, or a block could not ripen. */
const COUNT_S = 1, AGAIN_S = 5, AGAIN_AT_WISH_S = 1;
/** At one look. */
const MOST_CLAIMS = 8;

export interface NodeAtWork {
  readonly node: ClusterNode;
  readonly driver: ProtocolDriver;
  readonly pools: readonly NodePool[];
  /** By block; an ADD may be under way. */
  countLeases(): Map<string, number>;
}

export class PoolKeeper {
  /** Pools of which every block has an owner. */
  readonly full = new Set<string>();
  private readonly wishes = new Map<string, string>();
  private readonly emptySince = new Map<string, number>();
  private readonly claimAgainAt = new Map<string, number>();
  private ripenAgainAt = 0;
  private counted = new Map<string, number>();
  private countedAt = -Infinity;

  constructor(
    private readonly agent: NodeAtWork,
    private readonly files: NodeFiles,
    private readonly say: (text: string) => void,
  ) {}

  /** Whether nothing is wanted any more. */
  async look(): Promise<boolean> {
    const { agent } = this;
    if (!agent.node.isSound) return true;
    const used = this.countLeases();
    let isDone = await this.ripen();
    for (const pool of agent.pools) {
      const own = agent.node.held.grants.filter(({ key }) => poolOf(key) === pool.name);
      await this.giveBack(pool, own, used);
      isDone = await this.claim(pool, used) && isDone;
    }
    return isDone;
  }

  /** Every second, and when an ADD has wished. */
  private countLeases(): Map<string, number> {
    const now = preciseSecondsSinceBoot();
    if (now - this.countedAt < COUNT_S && !this.agent.pools.some(({ name }) => this.hasWished(name))) {
      return this.counted;
    }
    this.countedAt = now;
    return this.counted = this.agent.countLeases();
  }

  private async ripen(): Promise<boolean> {
    const { node, driver } = this.agent, now = preciseSecondsSinceBoot();
    const unripe = node.held.grants.filter((grant) => grant.state === "held" && !node.isServed(grant));
    const quiet = node.quietSince === undefined ? 0 : now - node.quietSince;
    if (unripe.length === 0) return true;
    if (quiet < node.delays.ripening || now < this.ripenAgainAt) return false;
    for (const grant of unripe) {
      if (await driver.run(ripenBlock(node, grant))) continue;
      this.ripenAgainAt = now + AGAIN_S;
      return false;
    }
    return true;
  }

  private async giveBack(pool: NodePool, own: readonly Grant[], used: Map<string, number>): Promise<void> {
    const { node, driver } = this.agent, now = preciseSecondsSinceBoot();
    const isGoing = (grant: Grant) => driver.going.get(pool.name)?.has(grant.key) === true;
    const isUnwanted = node.standing === "draining" || pool.obstacle !== undefined;
    const empty = own.filter((grant) => grant.state === "held" && !used.has(grant.key));
    for (const { key } of own) {
      if (used.has(key)) this.emptySince.delete(key);
      else if (!this.emptySince.has(key)) this.emptySince.set(key, now);
    }
    const spare = empty.toReversed().slice(
      0,
      isUnwanted ? empty.length : Math.max(0, empty.length - pool.pool.spare),
    );
    const isIdle = ({ key }: Grant) => isUnwanted || now - (this.emptySince.get(key) ?? now) > IDLE_S;
    const toRelease = own.filter((grant) =>
      grant.state === "closing" || isGoing(grant) || node.standing === "draining" ||
      (spare.includes(grant) && isIdle(grant))
    );
    for (const grant of toRelease) {
      if (grant.state === "closing" && used.has(grant.key)) continue;
      if (!node.notes.ripe.includes(grant.claim)) continue;
      if (!(await driver.run(releaseBlock(node, grant)))) continue;
      this.say(`gave ${grant.key} back`);
    }
  }

  private async claim(pool: NodePool, used: Map<string, number>): Promise<boolean> {
    const { agent } = this, { name } = pool;
    for (let count = 0; count < MOST_CLAIMS; count++) {
      const own = agent.node.held.grants.filter(({ key, state }) => poolOf(key) === name && state === "held");
      const hasWished = this.hasWished(name), isWanted = this.isWanted(pool, own, used, hasWished);
      if (!isWanted) return this.granted(name);
      const now = preciseSecondsSinceBoot();
      if (now < (this.claimAgainAt.get(name) ?? 0)) return false;
      const key = await agent.driver.run(claimBlock(agent.node, pool, newClaim));
      if (key === undefined) {
        if (obstacleOf(agent.node, agent.driver) === undefined) this.full.add(name);
        this.claimAgainAt.set(name, now + (hasWished ? AGAIN_AT_WISH_S : AGAIN_S));
        return false;
      }
      this.say(`claimed ${key}`);
      this.full.delete(name);
      await this.ripen();
    }
    return false;
  }

  private granted(name: string): boolean {
    const wish = this.files.wishOf(name);
    if (wish !== undefined) this.wishes.set(name, wish);
    return true;
  }

  private hasWished(name: string): boolean {
    const wish = this.files.wishOf(name);
    return wish !== undefined && wish !== this.wishes.get(name);
  }

  private isWanted(pool: NodePool, own: readonly Grant[], used: Map<string, number>, hasWished: boolean): boolean {
    const { node, driver } = this.agent;
    const isOpen = node.standing === "joined" && pool.obstacle === undefined &&
      obstacleOf(node, driver) === undefined;
    if (!isOpen || own.length >= pool.pool.mostBlocks) return false;
    const empty = own.filter(({ key }) => !used.has(key)).length;
    if (empty < pool.pool.spare) return true;
    if (!hasWished || empty > 0) return false;
    const taken = own.reduce((sum, { key }) => sum + (used.get(key) ?? 0), 0);
    return taken >= countServed(pool.pool, own.map(({ key }) => indexOf(key)));
  }
}
