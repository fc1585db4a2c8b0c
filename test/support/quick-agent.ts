/**
 * The agent with short delays, once, for a sweep of kills: STATE_DIRECTORY KEPT_IN NODE ENDPOINT. It begins at the end of
 * stdin, so that a tracer sees what the agent does, and nothing of the runtime's start.
 */
import { openStore } from "../../src/cluster-stores/open.ts";
import { nodeKey } from "../../src/cluster/records.ts";
import { Agent } from "../../src/services/node/agent.ts";
import { NodeFiles } from "../../src/services/node/files.ts";
import { Watching } from "../../src/services/node/watching.ts";

const [state, kept, name, endpoint] = process.argv.slice(2) as [string, string, string, string];
console.log("ready");
await Bun.stdin.text();
const store = openStore({ kind: "etcd", endpoints: [endpoint], prefix: "/patchbay/" });
const files = new NodeFiles(kept, state);
files.makeDirectories();
const self = { node: name, machine: "m", boot: "b1" }, ending = new AbortController();
const agent = new Agent({
  self,
  labels: { only: name },
  store,
  files,
  attachedAddresses: () => [],
  say: (text) => console.error(text),
  delays: { notice: 0.5, ripening: 1 },
});
const watching = new Watching(store, nodeKey(name), state, ending.signal);
while (!(await agent.look(watching))) await watching.wait(50);
process.exit(0);
