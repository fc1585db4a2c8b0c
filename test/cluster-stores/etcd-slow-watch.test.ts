/**
 * A watch that does not listen while 220 MB happen, and etcd forgets them. A watch that etcd has too much for may be told
 * nothing of it by etcd 3.4 (seen on a busy machine), so that it goes on with a gap: the renewal is what closes it.
 */
import { afterAll, expect, test } from "bun:test";
import { nodeKey } from "../../src/cluster/records.ts";
import { Etcd } from "../support/etcd.ts";
import { openMachine } from "../support/machine.ts";
import { RemoteStore } from "../support/remote-store.ts";
import { untilTrue } from "../support/until-true.ts";

const machine = await openMachine();
const etcd = await Etcd.start(machine, { members: [{ name: "m1", address: "127.0.0.1" }] });
const store = new RemoteStore(machine, {
  conf: { kind: "etcd", endpoints: etcd.endpoints, prefix: "/patchbay/" },
  options: { renewMs: 30_000 },
});
afterAll(async () => {
  for (const each of [store, etcd, machine]) await each[Symbol.asyncDispose]();
});

test("compacted while a watch does not listen: it ends, or is begun anew and tells of a change", async () => {
  const key = nodeKey("n1"), stop = new AbortController();
  let told = 0, reason: string | undefined;
  const watched = store.watch(key, () => told++, stop.signal).then((ended) => reason = ended);
  await untilTrue(() => told, (count) => count > 0);
  process.kill(store.pid, "SIGSTOP");
  // More than the connection and etcd hold for who does not read.
  const puts = `head -c 1000000 /dev/zero | tr '\\0' x >/run/value; for _ in $(seq 220); do
    etcdctl --endpoints=${etcd.endpoints[0]} put /patchbay/${key} </run/value; done`;
  await machine.sh(puts, { env: { ETCDCTL_API: "3" } });
  const { header: { revision } } = JSON.parse(await etcd.done("get", "none", "--write-out=json"));
  await etcd.done("compact", `${revision}`);
  process.kill(store.pid, "SIGCONT");
  const heard = await quietCount(() => told);
  expect(heard).toBeLessThan(220);
  await untilTrue(() => reason !== undefined || told > heard, Boolean);
  stop.abort();
  expect(await watched).toMatch(/^it was no longer wanted$|etcd has ended the watch: .* has been compacted$/);
});

/** What the count is when it has not risen for a while. */
async function quietCount(look: () => number): Promise<number> {
  for (let last = -1;;) {
    const count = look();
    if (count === last) return count;
    last = count;
    await Bun.sleep(2000);
  }
}
