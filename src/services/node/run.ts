/** `patchbay node`: from the configuration to an agent that runs, or that does what is due and ends. */
import { BY_HAND, type ClusterConf, clusterConfFrom, CONFIGURATION_FILE } from "../../cluster/configuration.ts";
import { nodeKey } from "../../cluster/records.ts";
import { agentLockPath } from "../../cluster/served-file.ts";
import { openStore } from "../../cluster-stores/open.ts";
import { CniError, errorText, INVALID_CONFIG } from "../../cni/error.ts";
import { parseDocument } from "../../cni/json.ts";
import { secondsSinceBoot } from "../../ffi/clock.ts";
import { idAt, O_CREAT, O_RDWR, readConfiguredFile } from "../../ffi/files.ts";
import { printableWord } from "../../ffi/terminal.ts";
import { lockExclusive, StillLocked } from "../../process/lock.ts";
import { stateDirectory } from "../../process/state-directory.ts";
import { openStateFile } from "../../process/state-file.ts";
import { expectLongLife } from "../daemon/long-life.ts";
import { tellManager } from "../daemon/notify.ts";
import { Agent } from "./agent.ts";
import { AgentByHand } from "./by-hand.ts";
import { NodeFiles } from "./files.ts";
import { DATA_DIRECTORY } from "./paths.ts";
import { thisNode } from "./self.ts";
import type { AttachedAddresses } from "./use.ts";
import { Watching } from "./watching.ts";

/** A connected agent notices what concerns it, and a dead one is started again, within `notice` seconds. */
export const AGENT_DELAYS = { notice: 2, ripening: 10 };

export interface NodeOptions {
  config?: string;
  dataDirectory?: string;
  attachedAddresses: AttachedAddresses;
  say(text: string): void;
}

/** A file that is named has to be there. */
export function readClusterConf(path: string | undefined): ClusterConf {
  const file = path ?? CONFIGURATION_FILE, text = readConfiguredFile(file);
  if (text === undefined) {
    if (path === undefined) return BY_HAND;
    throw new CniError(INVALID_CONFIG, `${file}: no such file`);
  }
  try {
    return clusterConfFrom(parseDocument(text, "it is no JSON"));
  } catch (error) {
    throw new CniError(INVALID_CONFIG, `${file}: ${errorText(error)}`, "", { cause: error });
  }
}

/** Returns the exit status when it has lost its lock. Nothing is to be done at its end: it may be killed at any moment. */
export async function runAgent(options: NodeOptions): Promise<number> {
  expectLongLife();
  const { agent, watching, files } = start(options), lock = agentLockPath(files.stateDirectory), own = idAt(lock);
  files.forgetSync();
  if (!tellManager("READY=1")) options.say(`runs as node ${agent.name}`);
  await agent.run(watching, () => idAt(lock) === own);
  // Another agent could begin; and ADD finds nothing.
  options.say(`${lock} has been removed, with what was beside it: this agent ends, and the next one writes it anew`);
  return 1;
}

/** The same once: for hosts without a service, and for timers. Returns the exit status: 1 when something is still wanted. */
export async function syncNode(options: NodeOptions): Promise<number> {
  const { agent, watching, files, stop } = start(options), deadline = performance.now() + agent.patienceMs;
  while (!(await agent.look(watching))) {
    if (performance.now() > deadline) {
      options.say("not everything that it wants is done");
      return 1;
    }
    await watching.wait(LOOK_MS);
  }
  files.saveSync(secondsSinceBoot());
  stop();
  return 0;
}

const LOOK_MS = 100, LOCK_PATIENCE_MS = 100;

interface AnyAgent {
  name: string;
  /** How long doing what is due may take. */
  patienceMs: number;
  run(watching: Watching, goesOn: () => boolean): Promise<void>;
  look(watching: Watching): Promise<boolean>;
}

function start(options: NodeOptions) {
  const { attachedAddresses } = options, say = (text: string) => options.say(printableWord(text));
  const conf = readClusterConf(options.config), self = thisNode(conf.node), store = openStore(conf.store, self.node);
  const files = lockedFiles(options.dataDirectory), ending = new AbortController(), { signal } = ending;
  const agent: AnyAgent = store.isWritable
    ? new Agent({ self, labels: conf.labels, store, files, attachedAddresses, say, delays: AGENT_DELAYS })
    : new AgentByHand({ node: self.node, store, files, say });
  const watching = new Watching(store, nodeKey(self.node), files.stateDirectory, signal);
  return { agent, watching, files, stop: () => ending.abort() };
}

/**
 * One agent for each state directory, or a command in its place. The lock ends with the process. ADD holds it for a moment, to
 * see whether one runs.
 */
export function lockedFiles(dataDirectory = DATA_DIRECTORY): NodeFiles {
  const files = new NodeFiles(dataDirectory, stateDirectory());
  files.makeDirectories();
  const path = agentLockPath(files.stateDirectory), { fd } = openStateFile(path, O_RDWR | O_CREAT);
  try {
    lockExclusive(fd, path, LOCK_PATIENCE_MS);
  } catch (cause) {
    if (!(cause instanceof StillLocked)) throw cause;
    throw new Error(
      `${path} is locked: another 'patchbay node' runs on this host: stop it first ('systemctl stop patchbay-node')`,
      { cause },
    );
  }
  return files;
}
