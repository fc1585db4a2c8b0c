/** The life of this node's blocks: claimed, ripened, served, closed, released; and looked after meanwhile. */
import {
  chosen,
  ForeignRecord,
  type Grant,
  listBlocks,
  MOST_ATTEMPTS,
  newClaim,
  now,
  putRecord,
  readStored,
  type Steps,
  StoreSilent,
  usedBlocks,
} from "./effects.ts";
import type { ClusterNode } from "./node.ts";
import { isSingle } from "./pool.ts";
import {
  ALARM_KEY,
  blockKey,
  type BlockRecord,
  indexOf,
  isOwnedBy,
  nodeKey,
  type NodeRecord,
  poolOf,
  type Stored,
} from "./records.ts";

/** Whose a block is whose record is none, among those of others. */
export const NOBODY = "nobody";

export interface PoolOfBlocks {
  name: string;
  birth: string;
  /** How many blocks it has. */
  size: number;
}

/** The key of the block that is held now; undefined when none is free, or none may be claimed. */
export function* claimBlock(node: ClusterNode, pool: PoolOfBlocks): Steps<string | undefined> {
  if (node.standing !== "joined" || (yield* hasAlarm())) return undefined;
  const listed = yield* listedBy(node, pool);
  if (hasEarlierPool(node, pool, listed)) return undefined;
  return (yield* claimAmong(node, pool, yield* neverUsed(node, pool, listed))) ??
    (yield* claimAmong(node, pool, givenBack(pool, listed)));
}

function* claimAmong(node: ClusterNode, pool: PoolOfBlocks, among: Candidate[]): Steps<string | undefined> {
  while (among.length > 0) {
    const [{ index, record }] = among.splice(yield* chosen(among.length), 1) as [typeof among[number]];
    const key = blockKey(pool.name, index);
    if (yield* attemptClaim(node, { key, index, pool, was: record })) return key;
  }
  return undefined;
}

interface Candidate {
  index: number;
  record?: Stored<BlockRecord>;
}

/** More blocks than this are drawn from, and not looked through. */
const FEW = 4096, MOST_DRAWS = 64;

function givenBack({ size }: PoolOfBlocks, blocks: readonly Stored<BlockRecord>[]): Candidate[] {
  return blocks.filter(({ value, isGoing }) => value.owner === undefined && !isGoing && value.index < size)
    .map((record) => ({ index: record.value.index, record }));
}

/** Blocks that have no record, or some of them. */
function* neverUsed(
  { held }: ClusterNode,
  { name, size }: PoolOfBlocks,
  listed: readonly Stored<BlockRecord>[],
): Steps<Candidate[]> {
  const found = new Set<number>();
  if (size <= FEW) { for (let index = 0; index < size; index++) found.add(index); }
  else for (let draw = 0; draw < MOST_DRAWS; draw++) found.add(yield* chosen(size));
  for (const { value } of listed) found.delete(value.index);
  for (const { key } of held.grants) if (poolOf(key) === name) found.delete(indexOf(key));
  return [...found].map((index) => ({ index }));
}

/** Blocks of an earlier pool of this name may have the same addresses under other keys. */
function hasEarlierPool(
  { earlierPools }: ClusterNode,
  { name, birth }: PoolOfBlocks,
  blocks: readonly Stored<BlockRecord>[],
): boolean {
  const has = blocks.some(({ value: { owner, poolBirth } }) => owner !== undefined && poolBirth !== birth);
  if (has) earlierPools.add(name);
  else earlierPools.delete(name);
  return has;
}

/** A block that was asked for by its number: whether it is held now, or the node that has it; undefined when neither. */
export function* claimThis(
  node: ClusterNode,
  pool: PoolOfBlocks,
  index: number,
): Steps<true | { owner: string } | undefined> {
  if (node.standing !== "joined" || (yield* hasAlarm())) return undefined;
  const key = blockKey(pool.name, index), was = yield* readStored<BlockRecord>(key);
  if (was?.value.owner !== undefined) return { owner: was.value.owner.node };
  if (was?.isGoing || node.held.grants.some((grant) => grant.key === key)) return undefined;
  if (hasEarlierPool(node, pool, yield* listedBy(node, pool))) return undefined;
  return (yield* attemptClaim(node, { key, index, pool, was })) || undefined;
}

function* listedBy(node: ClusterNode, pool: PoolOfBlocks): Steps<Stored<BlockRecord>[]> {
  const { blocks, revision } = yield* listBlocks(pool.name), { seen } = node.held;
  if (revision < seen) yield* node.alarm(`the store is at ${revision}, and was at ${seen}`);
  if (revision !== seen) yield* node.save({ ...node.held, seen: revision });
  return blocks;
}

interface Attempt {
  key: string;
  index: number;
  pool: PoolOfBlocks;
  was: Stored<BlockRecord> | undefined;
}

function* attemptClaim(node: ClusterNode, { key, index, pool, was }: Attempt): Steps<boolean> {
  const claim = yield* newClaim(), owner = { node: node.self.node, generation: node.held.generation, claim };
  const begun = yield* now();
  const written = yield* putRecord<BlockRecord>(key, was, { poolBirth: pool.birth, index, owner });
  const won = typeof written === "object"
    ? written.won
    : written === "unknown"
    ? yield* mineAfterAll(key, claim)
    : undefined;
  if (won === undefined) return false;
  // Who has waited long cannot know what others have seen meanwhile.
  const isSlow = (yield* now()) - begun > node.delays.notice;
  if (isSlow) node.quietSince = yield* now();
  yield* node.keepGrant({ key, claim, state: "held", version: won.version });
  return true;
}

function* mineAfterAll(key: string, claim: string): Steps<Stored<BlockRecord> | undefined> {
  const found = yield* readStored<BlockRecord>(key);
  return found?.value.owner?.claim === claim ? found : undefined;
}

function* hasAlarm(): Steps<boolean> {
  return (yield* readStored(ALARM_KEY)) !== undefined;
}

/** Whether it ripened: from now on it is served, or may be released. */
export function* ripenBlock(node: ClusterNode, grant: Grant): Steps<boolean> {
  const { delays: { notice, ripening } } = node, begun = yield* now();
  if (!node.isSound || grant.state === "unknown" || node.quietSince === undefined) return false;
  if (begun - node.quietSince < ripening) return false;
  if (yield* hasAlarm()) return false;
  if (!(yield* isStillMe(node))) return false;
  const record = yield* readStored<BlockRecord>(grant.key);
  const isMine = record !== undefined && !record.isGoing &&
    isOwnedBy(record.value, node.self.node, node.held.generation) && record.value.owner!.claim === grant.claim;
  if (!isMine || (yield* now()) - begun > notice || node.quietSince === undefined) return false;
  yield* node.note({ ...node.notes, ripe: [...node.notes.ripe, grant.claim] });
  return true;
}

function* isStillMe({ self, held }: ClusterNode): Steps<boolean> {
  const record = yield* readStored<NodeRecord>(nodeKey(self.node));
  if (record === undefined) return false;
  const { value: { boot, machine, generation, isContested, state } } = record;
  return boot === self.boot && machine === self.machine && generation === held.generation && !isContested &&
    state !== "off";
}

/** Whether it is gone. What has not ripened in this boot is not mine to give away: the disk may be a copy. */
export function* releaseBlock(node: ClusterNode, grant: Grant): Steps<boolean> {
  if (!node.isSound || !node.notes.ripe.includes(grant.claim)) return false;
  const closing: Grant = { ...grant, state: "closing" };
  if (grant.state !== "closing") yield* node.keepGrant(closing);
  if ((yield* usedBlocks()).includes(grant.key)) return false;
  const record = yield* readStored<BlockRecord>(grant.key);
  const isMine = record !== undefined && record.value.owner?.claim === grant.claim;
  if (isMine) {
    if (!(yield* isStillMe(node))) return false;
    const { owner: _, ...value } = record.value;
    const written = yield* putRecord<BlockRecord>(grant.key, record, { ...value, lastNode: node.self.node });
    // Read again the next time, and then seen to be done, or repeated.
    if (typeof written !== "object") return false;
  }
  yield* node.dropGrant(grant);
  return true;
}

/** At each connection, when the own record may have changed, and whenever a watch of it begins anew. */
export function* verifyNode(node: ClusterNode, pools: readonly PoolOfBlocks[]): Steps<void> {
  const wasMine = yield* node.confirm();
  if (!wasMine) node.quietSince = yield* now();
  // A contested one, too, says what the store has lost: its containers run.
  if (node.standing === "refused") return;
  const alarm = yield* node.alarmBirth(), used = yield* usedBlocks();
  // After an alarm that is over; one that is raised below ends it again.
  if (alarm === undefined) node.quietSince ??= yield* now();
  for (const pool of pools) yield* verifyBlocks(node, pool, used);
  yield* node.report(alarm);
}

function* verifyBlocks(node: ClusterNode, pool: PoolOfBlocks, usedKeys: readonly string[]): Steps<void> {
  const { node: name } = node.self;
  const listed = (yield* listedBy(node, pool)).filter(({ value }) => isOwnedBy(value, name, node.held.generation));
  const used = usedKeys.filter((key) => poolOf(key) === pool.name),
    granted = node.held.grants.filter(({ key }) => poolOf(key) === pool.name),
    keys = new Set([...[...granted, ...listed].map(({ key }) => key), ...used]);
  for (const key of keys) {
    try {
      yield* verifyOne(node, pool, key, used.includes(key));
    } catch (error) {
      if (!(error instanceof ForeignRecord)) throw error;
      // The others are looked after all the same.
      node.conflicts.set(key, NOBODY);
    }
  }
}

function* verifyOne(node: ClusterNode, pool: PoolOfBlocks, key: string, isUsed: boolean): Steps<void> {
  const found = yield* readStored<BlockRecord>(key), grant = node.held.grants.find((each) => each.key === key);
  if (found !== undefined && isOwnedBy(found.value, node.self.node, node.held.generation)) {
    const { version, value: { owner, poolBirth, index } } = found;
    // An earlier pool's, or one that this pool does not have: its addresses are others' by now, or nobody's.
    const isOfPool = poolBirth === pool.birth && (index < pool.size || isSingle(index));
    if (grant === undefined && !isOfPool) return;
    if (grant !== undefined && version < grant.version) yield* node.alarm(`${key} is that of an earlier time`);
    const isWiped = node.held.wipedIn === node.self.boot;
    const state = grant?.state ?? (isWiped ? "unknown" : "held");
    node.conflicts.delete(key);
    if (grant?.version === version && grant.claim === owner!.claim) return;
    yield* node.keepGrant({ key, claim: owner!.claim, state, version });
    return;
  }
  // What is another's for good is given up when the last container has gone; nothing more was given out of it.
  const isLost = found?.value.owner !== undefined && node.conflicts.has(key);
  if (!isUsed && (grant === undefined || !node.isServed(grant) || isLost)) {
    node.conflicts.delete(key);
    if (grant !== undefined) yield* node.dropGrant(grant);
    return;
  }
  yield* node.alarm(`${key} is no longer ${node.self.node}'s in the store`);
  yield* putBack(node, grant ?? { key, claim: yield* newClaim(), state: "unknown", version: 0 }, pool);
}

/** Who has containers there says so again at once when another was faster, until that one has it for good. */
function* putBack(node: ClusterNode, { key, claim, state }: Grant, pool: PoolOfBlocks): Steps<void> {
  const owner = { node: node.self.node, generation: node.held.generation, claim };
  const index = indexOf(key);
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    const found = yield* readStored<BlockRecord>(key);
    if (found?.value.owner?.claim === claim && isOwnedBy(found.value, owner.node, owner.generation)) {
      return yield* node.keepGrant({ key, claim, state, version: found.version });
    }
    if (found?.value.owner !== undefined) {
      node.conflicts.set(key, found.value.owner.node);
      return;
    }
    yield* putRecord<BlockRecord>(key, found, { poolBirth: pool.birth, index, owner });
  }
  throw new StoreSilent(`${key} cannot be put back`);
}
