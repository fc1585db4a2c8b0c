/** A watch that does not listen while 220 MB happen, and etcd forgets them. */
import { afterAll, expect, test } from "bun:test";
import { nodeKey } from "../../src/cluster/records.ts";
import { Etcd } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { RemoteStore } from "../support/remote-store.ts";
import { untilTrue } from "../support/until-true.ts";

const machine = await openMachine();
const etcd = await Etcd.start(machine, { members: [{ name: "m1", address: "127.0.0.1" }] });
const store = new RemoteStore(machine, { conf: { kind: "etcd", endpoints: etcd.endpoints, prefix: "/patchbay/" } });
afterAll(async () => {
  for (const each of [store, etcd, machine]) await each[Symbol.asyncDispose]();
});

test("compacted while a watch does not listen: it ends, because nobody knows what it has missed", async () => {
  const key = nodeKey("n1");
  let told = 0;
  const watched = store.watch(key, () => told++, new AbortController().signal);
  await untilTrue(() => told, (count) => count > 0);
  process.kill(store.pid, "SIGSTOP");
  // More than the connection and etcd hold for who does not read.
  const puts = `head -c 1000000 /dev/zero | tr '\\0' x >/run/value; for _ in $(seq 220); do
    etcdctl --endpoints=${etcd.endpoints[0]} put /patchbay/${key} </run/value; done`;
  await machine.sh(puts, { env: { ETCDCTL_API: "3" } });
  const { header: { revision } } = JSON.parse(await etcd.done("get", "none", "--write-out=json"));
  await etcd.done("compact", `${revision}`);
  process.kill(store.pid, "SIGCONT");
  expect(await watched).toMatch(/etcd has ended the watch: what happened up to revision \d+ has been compacted$/);
});
