/** `patchbay node check`: how a node stands, in the store and on this host; and the end of an alarm. */
import {
  alarmObstacles,
  type ClusterFinding,
  type ClusterRecords,
  foreignFinding,
  nodeFindings,
} from "../../../cluster/findings.ts";
import { isNodeName } from "../../../cluster/decoding.ts";
import { selfFindings } from "../../../cluster/host-findings.ts";
import { MOST_ATTEMPTS, StoreSilent } from "../../../cluster/effects.ts";
import {
  ALARM_KEY,
  type AlarmRecord,
  nodeKey,
  type NodeRecord,
  poolKey,
  type Stored,
} from "../../../cluster/records.ts";
import type { ServedPool } from "../../../cluster/served-file.ts";
import type { ClusterStore } from "../../../cluster/store.ts";
import { errorText } from "../../../cni/error.ts";
import { notDone } from "../not-done.ts";
import { thisNode } from "../self.ts";
import { checkName, inCluster, recordsOf, unknownName, withAdvice } from "./cluster.ts";
import { oneLine } from "./one-line.ts";
import { type HostFacts, hostFacts, type OwnPool, ownPools } from "./host.ts";
import { nameOfThisHost, nodesIn, type NodeSummary } from "./nodes.ts";

export interface NodeCheck {
  store: string;
  node: string;
  /** `known`: a node that is missing there was lost with a restore of the store. */
  alarm?: { by: string; saw: string; known: string[]; looked: string[]; openBecause: string[] };
  record?: NodeSummary;
  /** Undefined for another host. */
  host?: { isAgentRunning: boolean; generation: number; pools: OwnPool[] };
  findings: ClusterFinding[];
}

export interface HostOptions {
  config: string | undefined;
  dataDirectory: string | undefined;
}

/** `node`: this host's where it is undefined. Where the store is silent, what this host has is told all the same. */
export function checkNode({ config, dataDirectory }: HostOptions, node: string | undefined): Promise<NodeCheck> {
  return inCluster(config, async ({ store, conf }) => {
    if (node !== undefined) checkName("node", node);
    const own = node === undefined ? thisNode(conf.node).node : nameOfThisHost(conf.node), name = node ?? own!;
    const asked = await recordsOrSilence(store), { records, silence } = asked;
    const isKnown = records === undefined || nodesIn(records, own).nodes.some((each) => each.node === name);
    if (name !== own && !isKnown) throw unknownName("node", name, records.nodes.keys());
    const host = name === own ? hostFacts(thisNode(conf.node), dataDirectory, records) : undefined;
    const byHand = store.isWritable ? undefined : records;
    return {
      store: store.name,
      node: name,
      ...records !== undefined && standingIn(records, name, own),
      ...host !== undefined && {
        host: {
          isAgentRunning: host.isAgentRunning,
          generation: host.held.generation,
          pools: ownPools(host, byHand),
        },
      },
      findings: [
        ...silence === undefined ? [] : [silence],
        ...records === undefined ? [] : findingsOf(records, name),
        ...host === undefined ? [] : hostFindings(host, records, store),
      ],
    };
  });
}

async function recordsOrSilence(
  store: ClusterStore,
): Promise<{ records?: ClusterRecords; silence?: ClusterFinding }> {
  try {
    return { records: await recordsOf(store) };
  } catch (error) {
    if (!(error instanceof StoreSilent)) throw error;
    const problem = errorText(withAdvice(store, error));
    return {
      silence: { about: "store", problem, step: "what this host serves, it goes on serving; nothing is claimed" },
    };
  }
}

function standingIn(
  records: ClusterRecords,
  name: string,
  own: string | undefined,
): Pick<NodeCheck, "alarm" | "record"> {
  const { alarm, nodes } = nodesIn(records, own), record = nodes.find(({ node }) => node === name);
  const looked = nodes.filter(({ hasLooked }) => hasLooked).map(({ node }) => node);
  return {
    ...alarm !== undefined && { alarm: { ...alarm, known: nodes.map(({ node }) => node), looked } },
    ...record?.state !== undefined && { record },
  };
}

function findingsOf(records: ClusterRecords, name: string): ClusterFinding[] {
  const { alarm, nodes, problems } = records, record = nodes.get(name);
  const own = problems.filter((problem) => problem.startsWith(`${nodeKey(name)} `)).map(foreignFinding);
  const open = alarm === undefined ? [] : alarmObstacles(alarm, records);
  const step = open.length === 0
    ? "everybody has looked, and nobody disagrees: 'patchbay node check --over' takes it away"
    : "nobody claims before it is taken away";
  return [
    ...alarm === undefined
      ? []
      : [{ about: ALARM_KEY, problem: "it has been raised, and not been taken away", step }],
    ...own,
    ...record === undefined ? [] : nodeFindings(name, record),
  ];
}

function hostFindings(host: HostFacts, records: ClusterRecords | undefined, store: ClusterStore): ClusterFinding[] {
  const { self, held, served, isAgentRunning } = host,
    about = nodeKey(self.node),
    known = records?.nodes.get(self.node);
  const isForeign = records?.problems.some((problem) => problem.startsWith(`${about} `)) === true;
  // A roster knows no machines and no generations; what is no record is told as that.
  const isUnsaid = records === undefined || isForeign || !store.isWritable;
  const mine: NodeRecord = { ...self, generation: held.generation, state: "joined" };
  const silent = served.find((each) => each.silent !== undefined)?.silent;
  return [
    ...selfFindings(host, isUnsaid ? mine : known),
    ...store.isWritable || records === undefined || known !== undefined ? [] : [{
      about,
      problem: `${store.name} have no file for this host`,
      step: `write nodes.d/${self.node}.json, the same on every host`,
    }],
    ...isAgentRunning ? unseenPools(records, served) : [],
    ...silent === undefined || records === undefined ? [] : [{
      about: "agent",
      problem: `the store does not answer it: ${silent.why}`,
    }],
  ];
}

function unseenPools(records: ClusterRecords | undefined, served: readonly ServedPool[]): ClusterFinding[] {
  const seen = new Set(served.map(({ pool }) => pool));
  return [...records?.pools.keys() ?? []].filter((pool) => !seen.has(pool)).map((pool) => ({
    about: poolKey(pool),
    problem: "the agent of this host has not seen it yet",
    step: "it looks for pools when it starts, and every five minutes",
    isNote: true,
  }));
}

/** Takes the alarm away when everybody has looked since and nobody disagrees; throws otherwise. False without an alarm. */
export function endAlarm(config: string | undefined): Promise<boolean> {
  return inCluster(config, async ({ store }) => {
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const alarm = await store.read(ALARM_KEY) as Stored<AlarmRecord> | undefined;
      if (alarm === undefined) return attempt > 0;
      const open = alarmObstacles(alarm, await freshRecords(store));
      if (open.length > 0) throw notOver(open);
      const outcome = await store.put(ALARM_KEY, alarm, undefined);
      if (outcome === "lost" || "unknown" in outcome) continue;
      if ("refused" in outcome) throw new Error(outcome.refused);
      return true;
    }
    throw new StoreSilent("whether the alarm has been taken away, nobody knows: repeat the command");
  });
}

/** What a list shows may be old: each node's record is read. */
async function freshRecords(store: ClusterStore): Promise<ClusterRecords> {
  const listed = await recordsOf(store), nodes = new Map<string, NodeRecord>();
  const names = new Set([...listed.nodes.keys(), ...listed.blocks.flatMap(({ value }) => value.owner?.node ?? [])]);
  for (const name of names) {
    if (!isNodeName(name)) continue;
    const found = await store.read(nodeKey(name)) as Stored<NodeRecord> | undefined;
    if (found !== undefined) nodes.set(name, found.value);
  }
  return { ...listed, nodes };
}

function notOver(open: readonly string[]): Error {
  const nextStep =
    "start the agents of those that have not looked; 'patchbay node remove NODE --it-is-off' vouches for a " +
    "machine that is off; containers with another node's addresses are to be detached";
  return notDone(`the alarm is not over, and stays: ${oneLine(open.join("; "))}`, nextStep);
}
