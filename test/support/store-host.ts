/**
 * A host of a cluster, for remote-store.ts: opens the store that its first argument says, and does what lines on stdin ask,
 * all at once. Records stay here, with numbers: what was read is compared as it was read.
 */
import { openEtcd } from "../../src/cluster-stores/etcd.ts";
import { openStore } from "../../src/cluster-stores/open.ts";
import { type ClusterRecord, ForeignRecord } from "../../src/cluster/effects.ts";
import type { Stored } from "../../src/cluster/records.ts";
import type { ClusterStore } from "../../src/cluster/store.ts";
import type { Asked, StoreOfHost, Told } from "./remote-store.ts";

const { conf, options } = JSON.parse(process.argv[2]!) as StoreOfHost;
const store: ClusterStore = conf.kind === "etcd" ? openEtcd(conf, options) : openStore(conf);
const records: Stored<ClusterRecord>[] = [], watches = new Map<number, AbortController>();

function tell(told: Told): void {
  console.log(JSON.stringify(told));
}

const numbered = <Record extends Stored<ClusterRecord> | undefined>(record: Record) =>
  record && { ...record, number: records.push(record) - 1 };

async function answerTo(asked: Asked): Promise<unknown> {
  switch (asked.call) {
    case "read":
      return numbered(await store.read(asked.key));
    case "list": {
      const listed = await store.list(asked.kind, asked.pool);
      return { ...listed, records: listed.records.map(numbered) };
    }
    case "put": {
      const was = typeof asked.was === "number" ? records[asked.was] : asked.was;
      const outcome = await store.put(asked.key, was, asked.value);
      return typeof outcome === "object" && "won" in outcome ? { won: numbered(outcome.won) } : outcome;
    }
    case "watch": {
      const stop = new AbortController();
      if (asked.isAborted) stop.abort();
      watches.set(asked.id, stop);
      return await store.watch(asked.key, () => tell({ id: asked.id, isChanged: true }), stop.signal);
    }
    case "end":
      watches.get(asked.watch)?.abort();
      return undefined;
    case "close":
      store.close();
      return undefined;
  }
}

async function answer(asked: Asked): Promise<void> {
  const { id } = asked;
  try {
    tell({ id, answer: await answerTo(asked) });
  } catch (error) {
    const { message } = error as Error;
    tell({ id, error: error instanceof ForeignRecord ? { key: error.key, message } : { message } });
  }
}

for await (const line of console) void answer(JSON.parse(line));
process.exit(0);
