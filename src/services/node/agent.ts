/**
 * `patchbay node`: claims blocks of pools, looks after them, and gives them back. It may be killed at any moment: what it
 * knows is on the disk before anything depends on it, and the store is asked anew.
 */
import { NOBODY, verifyNode } from "../../cluster/blocks.ts";
import { type BootNotes, type Grant, type KeptState, StoreSilent } from "../../cluster/effects.ts";
import { ClusterNode, type Delays, type Self } from "../../cluster/node.ts";
import type { PoolRecord, Stored } from "../../cluster/records.ts";
import type { ClusterStore } from "../../cluster/store.ts";
import { preciseSecondsSinceBoot } from "../../ffi/clock.ts";
import { SyscallError } from "../../ffi/errno.ts";
import { ProtocolDriver } from "./driving.ts";
import { StillLocked } from "../../process/lock.ts";
import type { KeptPool, NodeFiles } from "./files.ts";
import { ForeignHosts } from "./foreign-hosts.ts";
import { keptPools, type NodePool, poolsOfNode } from "./pools.ts";
import type { NodeAtWork } from "./node-at-work.ts";
import { PoolKeeper } from "./pool-keeper.ts";
import { ServedFiles, servedPool } from "./serving.ts";
import { type AttachedAddresses, countLeases, countUse } from "./use.ts";
import type { Watching } from "./watching.ts";

export interface AgentOptions {
  self: Self;
  labels: Readonly<Record<string, string>>;
  store: ClusterStore;
  files: NodeFiles;
  attachedAddresses: AttachedAddresses;
  say(text: string): void;
  delays: Delays;
}

/** How often it looks whether leases have come and gone. */
const LOOK_MS = 1000;
/** Pools are few and change seldom. */
const POOLS_S = 300;
/** No pool has it. */
const UNKNOWN_BLOCK = "block/?.0";
const LEAST_PAUSE_S = 1, LONGEST_PAUSE_S = 8;

export class Agent implements NodeAtWork {
  readonly driver: ProtocolDriver;
  readonly node: ClusterNode;
  pools: NodePool[];
  private readonly served: ServedFiles;
  private readonly keeper: PoolKeeper;
  readonly foreign: ForeignHosts;
  private poolsAt = -Infinity;
  private keptPools: readonly KeptPool[];
  private problems = "";
  private isJoined = false;
  private hasChanged = false;
  private looksAgain = false;
  private lastServed: readonly unknown[] = [];
  private pauseS = LEAST_PAUSE_S;
  private notBefore = 0;
  /** What has been said of a file that ADD reads, and that could not be written. */
  private unwritten = "";

  constructor(readonly options: AgentOptions) {
    const { files, store, self, delays, say } = options;
    this.driver = new ProtocolDriver(store, {
      save: (held) => this.saved(held),
      note: (notes) => this.noted(notes),
      usedBlocks: () => this.usedBlocks(),
    }, { say });
    this.node = new ClusterNode(self, delays, files.readHeld(), files.readNotes());
    this.keptPools = files.readPools();
    this.pools = keptPools(this.keptPools, options.labels);
    this.driver.silent = this.pools.map(({ name }) => files.readServed(name)?.silent).find((silent) =>
      silent !== undefined
    );
    this.served = new ServedFiles(files);
    this.foreign = new ForeignHosts(files, say);
    this.keeper = new PoolKeeper(this, files, say);
    this.serve();
  }

  /** What it claims has to ripen. */
  readonly patienceMs = 30_000;

  get name(): string {
    return this.node.self.node;
  }

  async run(watching: Watching, goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.look(watching);
      await watching.wait(LOOK_MS);
    }
  }

  /** Once: what is due now. Whether everything that it wants is done. */
  async look(watching: Watching): Promise<boolean> {
    const now = preciseSecondsSinceBoot();
    const isTold = watching.takeChange(), { alarm } = this.driver;
    this.hasChanged ||= isTold;
    // A pause may last longer than a block ripens elsewhere: who is told something looks at once.
    if (now < this.notBefore && !isTold) return false;
    try {
      if (watching.lostFor > this.options.delays.notice) throw this.lost(watching.reason);
      if (!this.isJoined || this.hasChanged) await this.verify();
      this.hasChanged = this.looksAgain;
      this.looksAgain = false;
      const isDone = await this.keeper.look();
      if (alarm !== undefined && this.driver.alarm === undefined) this.hasChanged = true;
      this.pauseS = LEAST_PAUSE_S;
      return isDone;
    } catch (error) {
      if (!(error instanceof StoreSilent || error instanceof SyscallError)) throw error;
      if (this.pauseS === LEAST_PAUSE_S) this.options.say(error.message);
      // What could not be written here has not been decided; what the store did not answer is in doubt.
      if (error instanceof StoreSilent) {
        this.isJoined = false;
        this.node.quietSince = undefined;
      }
      this.notBefore = preciseSecondsSinceBoot() + this.pauseS * (0.5 + Math.random());
      this.pauseS = Math.min(LONGEST_PAUSE_S, this.pauseS * 2);
      return false;
    } finally {
      this.serveAgain();
    }
  }

  /** What cannot be written now is written at the next look. */
  private serveAgain(): void {
    try {
      this.serve();
      this.unwritten = "";
    } catch (error) {
      if (!(error instanceof SyscallError)) throw error;
      if (error.message !== this.unwritten) this.options.say(error.message);
      this.unwritten = error.message;
    }
  }

  /** Without a watch nobody would tell it that another machine says to be this node. */
  private lost(reason: string): StoreSilent {
    const why = `no watch of ${this.node.self.node}'s record begins: ${reason}`;
    this.driver.fellSilent(why);
    return new StoreSilent(why);
  }

  private async verify(): Promise<void> {
    const { driver, node } = this, before = node.standing, conflicts = node.conflicts.size;
    // Before it joins: what is in use, is in use of these pools.
    await this.refreshPools();
    if (!this.isJoined) await driver.run(node.join());
    this.isJoined = true;
    const alarm = driver.alarm;
    await driver.run(verifyNode(node, this.pools));
    if (alarm === undefined && driver.alarm !== undefined) {
      this.options.say(`the alarm, by ${driver.alarm.by}: ${driver.alarm.saw}`);
      // It has been raised meanwhile: that this node has looked, it says at the next look.
      this.looksAgain = true;
    }
    if (node.standing !== before) this.options.say(`node ${node.self.node} is ${node.standing}`);
    if (node.conflicts.size > conflicts) {
      for (const [key, other] of node.conflicts) {
        this.options.say(
          other === NOBODY
            ? `${key} is no record in the store, and nothing of it is served`
            : `${key} is ${other}'s, and containers here have its addresses`,
        );
      }
    }
  }

  async refreshPools(withinS = POOLS_S): Promise<boolean> {
    const now = preciseSecondsSinceBoot(), { files, labels, store, say } = this.options;
    if (now - this.poolsAt < withinS) return false;
    const { records, problems } = await this.driver.asked(() => store.list("pool"));
    if (problems.join() !== this.problems) { for (const problem of problems) say(problem); }
    this.problems = problems.join();
    const known = this.pools.map(({ kept }) => kept);
    const pools = poolsOfNode(records as Stored<PoolRecord>[], known, this.node.held.grants, labels, problems);
    const kept = pools.map((each) => each.kept);
    // Known only when it is on the disk: a lease belongs to the pool that it was made of.
    if (JSON.stringify(kept) !== JSON.stringify(this.keptPools)) files.savePools(kept);
    this.keptPools = kept;
    this.pools = pools;
    this.poolsAt = now;
    return true;
  }

  /** An ADD that hangs has the leases' lock: what it does, nobody knows. */
  private usedBlocks(): string[] {
    const { files, attachedAddresses, say } = this.options;
    try {
      return [...countUse(this.pools, files.leases, attachedAddresses, say).keys()];
    } catch (error) {
      if (!(error instanceof StillLocked)) throw error;
      say(`the leases are locked, and all blocks count as used: ${error.message}`);
      return [...this.node.held.grants.map(({ key }) => key), UNKNOWN_BLOCK];
    }
  }

  countLeases(): Map<string, number> {
    return countLeases(this.pools, this.options.files.leases);
  }

  /** In this order: what ADD is told never says more than what the next start finds. */
  private saved(held: KeptState): void {
    this.options.files.saveHeld(held);
    this.serve(held.grants);
  }

  private noted(notes: BootNotes): void {
    this.options.files.saveNotes(notes);
    this.serve(this.node.held.grants, notes);
  }

  private serve(grants: readonly Grant[] = this.node.held.grants, { ripe }: BootNotes = this.node.notes): void {
    const state = {
      node: this.node,
      driver: this.driver,
      store: this.options.store.name,
      full: this.keeper.full,
      ofOthers: this.keeper.ofOthers,
      foreignOf: (pool: string) => this.foreign.of(pool),
      probeProblems: this.foreign.problems,
    };
    // Looked at again and again: with a thousand blocks it takes as long as that to spell them out.
    const from = [
      grants,
      ripe,
      this.pools,
      this.node.standing,
      this.driver.alarm,
      this.driver.silent?.why,
      this.keeper.version,
      this.node.conflicts.size,
      [...this.node.earlierPools].join(),
    ];
    if (from.every((one, at) => one === this.lastServed[at])) return;
    const isServed = ({ key, state, claim }: Grant) =>
      state === "held" && ripe.includes(claim) && !this.node.conflicts.has(key) && this.node.standing !== "refused";
    this.served.write(this.pools.map((pool) => servedPool(pool, state, grants, isServed)));
    this.lastServed = from;
  }
}
