/** A cluster's store as commands of persons ask it: opened for one question, and closed again. */
import type { ClusterConf } from "../../../cluster/configuration.ts";
import { isNodeName } from "../../../cluster/decoding.ts";
import {
  changeRecord,
  type ClusterRecord,
  ForeignRecord,
  type Steps,
  StoreSilent,
} from "../../../cluster/effects.ts";
import { type ClusterRecords, foreignFinding } from "../../../cluster/findings.ts";
import { poolFrom } from "../../../cluster/pool-decoding.ts";
import { birthOf } from "../../../cluster/pool.ts";
import { isPoolName } from "../../../cluster/pool-name.ts";
import {
  ALARM_KEY,
  type AlarmRecord,
  type BlockRecord,
  nameIn,
  type NodeRecord,
  type PoolRecord,
  type Stored,
} from "../../../cluster/records.ts";
import type { ClusterStore } from "../../../cluster/store.ts";
import { openStore } from "../../../cluster-stores/open.ts";
import { closestName } from "../../../cni/spelling.ts";
import { CniError, INTERNAL } from "../../../cni/error.ts";
import { ProtocolDriver } from "../driving.ts";
import { notDone } from "../not-done.ts";
import { readClusterConf } from "../run.ts";
import { oneLine } from "./one-line.ts";

export interface OpenCluster {
  conf: ClusterConf;
  store: ClusterStore;
  /** For what a person does to the store: nothing of this host. */
  driver: ProtocolDriver;
}

export async function inCluster<T>(
  config: string | undefined,
  work: (cluster: OpenCluster) => Promise<T>,
): Promise<T> {
  const conf = readClusterConf(config), store = openStore(conf.store);
  try {
    const driver = new ProtocolDriver(store, { save() {}, note() {}, usedBlocks: () => [] });
    return await work({ conf, store, driver });
  } catch (error) {
    throw withAdvice(store, error);
  } finally {
    store.close();
  }
}

/** Which store it is, and what can be done about what is in it. */
export function withAdvice(store: ClusterStore, error: unknown): unknown {
  if (error instanceof ForeignRecord) {
    const { step } = foreignFinding(error.message);
    return new CniError(INTERNAL, oneLine(error.message), "", { cause: error, nextStep: step });
  }
  return error instanceof StoreSilent ? new Error(`${store.name}: ${error.message}`, { cause: error }) : error;
}

/** As lists show it: to tell, not to decide. */
export async function recordsOf(store: ClusterStore): Promise<ClusterRecords> {
  const [pools, nodes, blocks] = await Promise.all([store.list("pool"), store.list("node"), store.list("block")]);
  const problems = [pools, nodes, blocks].flatMap((listed) => listed.problems);
  const alarm = await store.list("alarm");
  return {
    pools: new Map((pools.records as Stored<PoolRecord>[]).map(({ key, birth, value }) => {
      const pool = poolFrom(nameIn(key), value);
      return [pool.name, { pool, birth: birthOf(birth, pool) }];
    })),
    nodes: new Map((nodes.records as Stored<NodeRecord>[]).map(({ key, value }) => [nameIn(key), value])),
    blocks: blocks.records as Stored<BlockRecord>[],
    alarm: alarm.records.find(({ key }) => key === ALARM_KEY) as Stored<AlarmRecord> | undefined,
    problems: [...problems, ...alarm.problems],
  };
}

/** What has come of it. Throws what the store refuses. */
export async function outcomeOf<Outcome extends string>(
  { driver }: OpenCluster,
  steps: Steps<Outcome | "refused">,
): Promise<Outcome> {
  const outcome = await driver.run(steps);
  if (outcome === "refused") throw new Error(driver.refusal ?? "the store refuses to write it");
  return outcome;
}

/** A record becomes what `change` makes of it, unless that throws. */
export async function changeStored<Value extends ClusterRecord>(
  cluster: OpenCluster,
  key: string,
  change: (found: Value | undefined, isRepeated: boolean) => Value,
): Promise<void> {
  try {
    await outcomeOf(cluster, changeRecord<Value>(key, change));
  } catch (error) {
    const { refusal, silent } = cluster.driver;
    if (refusal === undefined || !(error instanceof StoreSilent)) throw error;
    throw new StoreSilent(
      `${silent?.why ?? refusal}; whether ${key} has been written, nobody knows: repeat the command`,
    );
  }
}

/** The same of one that is there. Returns what it was. */
export async function changeNamed<Value extends ClusterRecord>(
  cluster: OpenCluster,
  kind: "pool" | "node",
  name: string,
  change: (value: Value) => Value,
): Promise<Value> {
  refuseByHand(cluster, kind, name);
  const known = (await cluster.store.list(kind)).records.map(({ key }) => nameIn(key));
  let before: Value | undefined;
  await changeStored<Value>(cluster, `${kind}/${name}`, (found) => {
    if (found === undefined) throw unknownName(kind, name, known);
    before ??= found;
    return change(found);
  });
  return before!;
}

/** Before a person's command writes anything. */
export function refuseByHand({ conf, store }: OpenCluster, kind: "pool" | "node", name: string): void {
  checkName(kind, name);
  if (conf.store.kind !== "roster") return;
  throw notDone(
    `${kind} ${name} is not changed: ${store.name} are written by hand`,
    `edit ${conf.store.directory}/${kind}s.d/${name}.json on every host`,
  );
}

const isName = { pool: isPoolName, node: isNodeName };

/** Before anything is asked: a key is made of it. */
export function checkName(kind: "pool" | "node", name: string): void {
  if (isName[kind](name)) return;
  const why = `${JSON.stringify(name)} is no name of a ${kind}`;
  throw new CniError(INTERNAL, `${why}: small letters, digits, dots and hyphens, 63 of them at most`);
}

export function unknownName(kind: "pool" | "node", name: string, known: Iterable<string>): Error {
  const meant = closestName(name, [...known]), hint = meant === undefined ? "" : `; did you mean "${meant}"?`;
  return notDone(`there is no ${kind} ${name}${hint}`, `'patchbay ${kind} list' lists those that there are`);
}
