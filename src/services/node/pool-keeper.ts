/** How many blocks this node has of each pool: claimed ahead or when ADD wishes, served when they are ripe, given back when they are empty. */
import { claimBlock, releaseBlock, ripenBlock } from "../../cluster/blocks.ts";
import { ForeignRecord, type Grant, readStored } from "../../cluster/effects.ts";
import { ALARM_KEY, indexOf, poolOf } from "../../cluster/records.ts";
import { countServed } from "../../cluster/served.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import type { NodeAtWork } from "./node-at-work.ts";
import type { NodeFiles } from "./files.ts";
import type { NodePool } from "./pools.ts";
import { obstacleOf } from "./serving.ts";
import { FRESH_S, isOfSingle, SingleKeeper } from "./single-keeper.ts";
import { Wishes } from "./wishes.ts";

/** A block that containers have just gone from is needed again soon. */
const IDLE_S = 60;
/** Where the store had nothing, or a block could not ripen. */
const AGAIN_S = 5, AGAIN_AT_WISH_S = 1;
/** At one look. */
const MOST_CLAIMS = 8;

export class PoolKeeper {
  /** Pools of which every block has an owner. */
  readonly full = new Set<string>();
  /** Another one after each change of what ADD is told. */
  get version(): string {
    return `${[...this.full]} ${this.agent.foreign.count} ${this.singles.version}`;
  }
  private readonly wishes: Wishes;
  private readonly singles: SingleKeeper;
  private readonly emptySince = new Map<string, number>();
  private readonly claimAgainAt = new Map<string, number>();
  private ripenAgainAt = 0;
  private alarmAgainAt = 0;
  private readonly saidForeign = new Set<string>();
  /** What has been said to ripen too slowly. */
  private slowClaim = "";

  constructor(
    private readonly agent: NodeAtWork,
    files: NodeFiles,
    private readonly say: (text: string) => void,
  ) {
    this.wishes = new Wishes(files);
    this.singles = new SingleKeeper(agent, this.wishes, say);
  }

  get ofOthers(): ReadonlyMap<string, ReadonlyMap<string, string>> {
    return this.singles.ofOthers;
  }

  /** Whether nothing is wanted any more. */
  async look(): Promise<boolean> {
    const { agent } = this;
    if (!agent.node.isSound) return false;
    await this.lookAtAlarm();
    await this.lookForPools();
    const used = agent.countLeases();
    await this.ripen();
    let isDone = true;
    for (const pool of agent.pools) {
      const own = agent.node.held.grants.filter(({ key }) => poolOf(key) === pool.name);
      await this.singles.look(pool, own, used);
      await this.giveBack(pool, own.filter((grant) => !isOfSingle(grant)), used);
      isDone = await this.claim(pool, used) && isDone;
    }
    return isDone && this.unripe().length === 0;
  }

  /** An ADD may know of one that is new. */
  private async lookForPools(): Promise<void> {
    const { agent, wishes } = this, wanted = wishes.beside(agent.pools);
    if (wanted.length === 0) return;
    if (!(await agent.refreshPools(FRESH_S))) return;
    for (const name of wishes.beside(agent.pools)) wishes.forget(name);
  }

  /** Nothing tells that it is over. */
  private async lookAtAlarm(): Promise<void> {
    const { driver } = this.agent, now = preciseSecondsSinceBoot();
    if (driver.alarm === undefined || now < this.alarmAgainAt) return;
    this.alarmAgainAt = now + AGAIN_S;
    await driver.run(readStored(ALARM_KEY));
  }

  private unripe(): Grant[] {
    const { node } = this.agent;
    return node.held.grants.filter((grant) => grant.state === "held" && !node.isServed(grant));
  }

  private async ripen(): Promise<void> {
    const { node, driver } = this.agent, now = preciseSecondsSinceBoot();
    const quiet = node.quietSince === undefined ? 0 : now - node.quietSince;
    if (quiet < node.delays.ripening || now < this.ripenAgainAt) return;
    for (const grant of this.unripe()) {
      const pool = this.agent.pools.find(({ name }) => name === poolOf(grant.key));
      const isAsked = pool !== undefined && this.agent.foreign.isAsked(pool, grant);
      // One a look: while a segment is asked, nothing is noticed.
      if (pool !== undefined && !isAsked && await this.agent.foreign.ask(pool, grant)) return;
      const begun = preciseSecondsSinceBoot();
      // A segment that cannot be asked is that of one pool.
      const isRipe = isAsked ? await this.unlessForeign(grant, driver.run(ripenBlock(node, grant))) : undefined;
      if (isRipe) continue;
      this.ripenAgainAt = now + AGAIN_S;
      if (isRipe === undefined) continue;
      this.sayIfSlow(grant, preciseSecondsSinceBoot() - begun);
      return;
    }
  }

  /** What is at the key of one block is no record: the others are looked after all the same. */
  private async unlessForeign({ key, claim }: Grant, work: Promise<boolean>): Promise<boolean | undefined> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ForeignRecord) || error.key !== key) throw error;
      if (!this.saidForeign.has(claim)) this.say(error.message);
      this.saidForeign.add(claim);
      return undefined;
    }
  }

  private sayIfSlow({ key, claim }: Grant, tookS: number): void {
    const { notice } = this.agent.node.delays;
    if (tookS <= notice || this.slowClaim === claim) return;
    this.slowClaim = claim;
    this.say(`${key} is not served: the store took ${tookS.toFixed(1)} s to confirm it, and ${notice} s are allowed`);
  }

  private async giveBack(pool: NodePool, own: readonly Grant[], used: Map<string, number>): Promise<void> {
    const { node, driver } = this.agent, now = preciseSecondsSinceBoot();
    const isGoing = (grant: Grant) => driver.going.get(pool.name)?.has(grant.key) === true;
    const isUnwanted = node.standing === "draining" || (pool.obstacle !== undefined && !pool.isUnclear);
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
      if (!(await this.unlessForeign(grant, driver.run(releaseBlock(node, grant))))) continue;
      this.emptySince.delete(grant.key);
      this.say(`gave ${grant.key} back`);
    }
  }

  private async claim(pool: NodePool, used: Map<string, number>): Promise<boolean> {
    const { agent } = this, { name } = pool;
    for (let count = 0; count < MOST_CLAIMS; count++) {
      const own = agent.node.held.grants.filter((grant) =>
        poolOf(grant.key) === name && grant.state === "held" && !isOfSingle(grant)
      );
      const hasWished = this.wishes.of(name) === "any", isWanted = this.isWanted(pool, own, used, hasWished);
      if (!isWanted) {
        if (hasWished) this.wishes.settle(name);
        else this.full.delete(name);
        return true;
      }
      const now = preciseSecondsSinceBoot();
      if (now < (this.claimAgainAt.get(name) ?? 0)) return false;
      await agent.refreshPools(FRESH_S);
      const current = agent.pools.find((each) => each.name === name);
      if (current?.birth !== pool.birth || current.obstacle !== undefined) return false;
      const key = await agent.driver.run(claimBlock(agent.node, pool));
      if (key === undefined) {
        const isHindered = obstacleOf(agent.node, agent.driver) !== undefined || agent.node.earlierPools.has(name);
        if (!isHindered) this.full.add(name);
        this.claimAgainAt.set(name, now + (hasWished ? AGAIN_AT_WISH_S : AGAIN_S));
        return false;
      }
      this.say(`claimed ${key}`);
      this.full.delete(name);
      await this.ripen();
    }
    return false;
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
