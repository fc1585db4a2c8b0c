/** What lets the agent look before its time: a change of its record, and an ADD's wish; nothing else. */
import { expect, test } from "bun:test";
import { mkdtempDisposableSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { openStore } from "../../../src/cluster-stores/open.ts";
import { Agent } from "../../../src/services/node/agent.ts";
import { NodeFiles } from "../../../src/services/node/files.ts";
import { Watching } from "../../../src/services/node/watching.ts";
import { untilTrue } from "../../support/until-true.ts";

const NOBODY_THERE = openStore({ kind: "etcd", endpoints: ["http://127.0.0.1:1"], prefix: "/patchbay/" });

test("a wish wakes it; other files beside the wishes do not", async () => {
  using temporary = mkdtempDisposableSync(`${tmpdir()}/waking-`);
  const directory = temporary.path, ending = new AbortController();
  const watching = new Watching(NOBODY_THERE, "node/n1", directory, ending.signal);
  let isAwake = false;
  const waited = watching.wait(1e9).then(() => isAwake = true);
  for (let file = 0; file < 100; file++) writeFileSync(`${directory}/pool~p${file}`, "{}");
  await Bun.sleep(500);
  expect(isAwake).toBe(false);
  writeFileSync(`${directory}/wish~lan`, "{}");
  await waited;
  ending.abort();
});

test("who is told of a change looks at once, also in the pause after a store that was silent", async () => {
  using temporary = mkdtempDisposableSync(`${tmpdir()}/waking-`);
  const files = new NodeFiles(`${temporary.path}/lib`, `${temporary.path}/run`);
  const said: string[] = [], asked: string[] = [];
  files.makeDirectories();
  const agent = new Agent({
    self: { node: "n1", machine: "m", boot: "b1" },
    labels: {},
    store: { ...NOBODY_THERE, list: (kind, pool) => (asked.push(kind), NOBODY_THERE.list(kind, pool)) },
    files,
    attachedAddresses: () => [],
    say: (text) => said.push(text),
    delays: { notice: 1e9, ripening: 1 },
  });
  let isTold = false;
  const watching = { takeChange: () => isTold, lostFor: 0, reason: "" } as unknown as Watching;
  const look = async () => (await agent.look(watching), asked.splice(0).length > 0);
  // A pause that is longer than this test: each is up to twice as long as the one before.
  await untilTrue(() => (isTold = true, look()), () => said.length > 0);
  for (let failures = 0; failures < 5; failures++) expect(await look()).toBe(true);
  isTold = false;
  expect(await look()).toBe(false);
  isTold = true;
  expect(await look()).toBe(true);
});
