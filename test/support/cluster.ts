/** A machine with etcd, and agents of nodes in it: each has directories of its own, and a boot that a test may end. */
import type { Subprocess } from "bun";
import { servedFrom, type ServedPool } from "../../src/cluster/served-file.ts";
import { Etcd } from "./etcd.ts";
import { type Machine, openMachine, type Outcome } from "./machine.ts";
import { PATCHBAY } from "./plugins.ts";

export const ENDPOINT = "http://127.0.0.1:2379";
const PREFIX = "/patchbay/", STORE = "store";

export interface Cluster extends AsyncDisposable {
  machine: Machine;
  /** Undefined for a key that is not there. */
  record(key: string): Promise<Record<string, unknown> | undefined>;
  /** Keys that begin so, without what stands before all keys. */
  keys(start: string): Promise<string[]>;
  write(key: string, value: unknown): Promise<void>;
  erase(key: string): Promise<void>;
  node(name: string, conf?: Record<string, unknown>): Promise<ClusterHost>;
  /** SIGKILL, SIGSTOP, SIGCONT. */
  signalStore(signal: NodeJS.Signals): void;
  startStore(): Promise<void>;
  /** The store forgets what it was before now. */
  compact(): Promise<void>;
  snapshot(path: string): Promise<void>;
  /** The store as it was then; its server is started again. */
  restore(path: string): Promise<void>;
}

export interface ClusterHost {
  name: string;
  /** /run/patchbay and /var/lib/patchbay of this node. */
  run: string;
  kept: string;
  environment: Record<string, string>;
  start(): Promise<void>;
  kill(): Promise<void>;
  /** What it has said on stderr since it started first. */
  said(): Promise<string>;
  sync(): Promise<{ code: number; stderr: string }>;
  /** `patchbay WORDS` with this node's configuration and directories. */
  ask(words: string, stdin?: string): Promise<Outcome>;
  /** The same as a line of a shell, outside of it. */
  line(words: string): string;
  /** A shell script on this node, which must succeed. */
  inside(script: string): Promise<string>;
  /** From now on the machine's fingerprint is another. */
  becomeMachine(id: string): Promise<void>;
  served(pool: string): Promise<ServedPool | undefined>;
  /** Until the file of the pool is so. */
  until(pool: string, isSo: (served: ServedPool | undefined) => boolean): Promise<ServedPool>;
  /** What begins here from now on finds the clock of the boot so many seconds later. */
  passTime(seconds: number): void;
  /** As after a power cut: /run is empty, and the kernel has another boot id. Calls of plugins do not see that one. */
  reboot(): Promise<void>;
  lease(pool: string, address: string): Promise<void>;
  unlease(pool: string, address: string): Promise<void>;
}

let boots = 0;

export async function openCluster(): Promise<Cluster> {
  const machine = await openMachine(), hosts: ClusterHost[] = [];
  const etcd = Etcd.prepare(machine, { members: [{ name: STORE, address: "127.0.0.1" }] });
  const startStore = async () => {
    // One that was killed may still have the port.
    await etcd.kill(STORE);
    etcd.begin(STORE);
    await etcd.untilReady();
  };
  await startStore();
  const cluster: Cluster = {
    machine,
    async record(key) {
      const text = await etcd.done("get", "--print-value-only", PREFIX + key);
      return text === "" ? undefined : JSON.parse(text);
    },
    async keys(start) {
      const text = await etcd.done("get", "--prefix", "--keys-only", PREFIX + start);
      return text.split("\n").filter((line) => line !== "").map((line) => line.slice(PREFIX.length));
    },
    async write(key, value) {
      await etcd.done("put", PREFIX + key, typeof value === "string" ? value : JSON.stringify(value));
    },
    async erase(key) {
      await etcd.done("del", PREFIX + key);
    },
    async node(name, conf = {}) {
      const host = await openHost(machine, name, { store: { etcd: { endpoints: [ENDPOINT] } }, ...conf });
      hosts.push(host);
      return host;
    },
    signalStore: (signal) => etcd.signal(STORE, signal),
    startStore,
    async compact() {
      const status = JSON.parse(await etcd.done("endpoint", "status", "--write-out", "json"));
      await etcd.done("compact", String(status[0].Status.header.revision));
    },
    async snapshot(path) {
      await etcd.done("snapshot", "save", path);
    },
    async restore(path) {
      await etcd.kill(STORE);
      await etcd.restore(STORE, path);
      await startStore();
    },
    async [Symbol.asyncDispose]() {
      for (const host of hosts) await host.kill();
      await etcd[Symbol.asyncDispose]();
      await machine[Symbol.asyncDispose]();
    },
  };
  return cluster;
}

async function openHost(machine: Machine, name: string, conf: Record<string, unknown>): Promise<ClusterHost> {
  const run = `/run/nodes/${name}/run`, kept = `/run/nodes/${name}/lib`, file = `/run/nodes/${name}/cluster.json`;
  const boot = `/run/nodes/${name}/boot`, log = `/run/nodes/${name}/log`;
  await machine.sh(`mkdir -p /run/nodes/${name}`);
  const bootAgain = () =>
    machine.sh(`rm -rf ${run}; printf '%08x-0000-4000-8000-000000000000\\n' ${++boots} > ${boot}`);
  await machine.run(["sh", "-c", `cat > ${file}`], { stdin: JSON.stringify({ node: name, ...conf }) });
  const environment = { PATCHBAY_STATE_DIR: run };
  const ownBoot = `test ! -e ${boot} || mount --bind ${boot} /proc/sys/kernel/random/boot_id`;
  let own = ownBoot, later = 0;
  // A mount namespace of its own has another boot's id.
  const inside = (
    line: string,
  ) => [
    "unshare",
    "--mount",
    "--time",
    "--boottime",
    String(later),
    "sh",
    "-c",
    `${own}; export PATCHBAY_STATE_DIR=${run}; ${line}`,
  ];
  const command = (words: string, output: string) =>
    inside(`exec ${PATCHBAY} node ${words} --config ${file} --data-dir ${kept} ${output}`);
  let agent: Subprocess | undefined;
  const host: ClusterHost = {
    name,
    run,
    kept,
    environment,
    start() {
      agent = machine.start(command("", `>>${log} 2>&1`));
      return Promise.resolve();
    },
    async kill() {
      agent?.kill("SIGKILL");
      await agent?.exited;
      agent = undefined;
    },
    said: () => machine.sh(`cat ${log} 2>/dev/null || true`),
    sync: () => machine.run(command("sync", "")),
    ask(words, stdin) {
      const hasDirectory = /^(node|ipam) (check|replace|show|list)\b/.test(words);
      const line = `exec ${PATCHBAY} ${words} --config ${file} ${hasDirectory ? `--data-dir ${kept}` : ""}`;
      return machine.run(inside(line), stdin === undefined ? {} : { stdin });
    },
    line: (words) => `PATCHBAY_STATE_DIR=${run} exec ${PATCHBAY} ${words} --config ${file}`,
    async inside(script) {
      const { code, stdout, stderr } = await machine.run(inside(script));
      if (code !== 0) throw new Error(`${script}: ${stderr || stdout}`);
      return stdout;
    },
    async becomeMachine(id) {
      const etc = `/run/nodes/${name}/etc`;
      await machine.sh(`[ -d ${etc} ] || cp -a /etc ${etc}; rm -f ${etc}/machine-id; echo ${id} > ${etc}/machine-id`);
      own = `${ownBoot}; mount --bind ${etc} /etc`;
    },
    async served(pool) {
      const text = await machine.sh(`cat '${run}/pool~${pool}' 2>/dev/null || true`);
      return text === "" ? undefined : servedFrom(text);
    },
    async until(pool, isSo) {
      for (;;) {
        const served = await host.served(pool);
        if (isSo(served)) return served!;
        if (agent !== undefined && agent.exitCode !== null) {
          throw new Error(`the agent has ended: ${await host.said()}`);
        }
        await Bun.sleep(100);
      }
    },
    passTime(seconds) {
      later += seconds;
    },
    async reboot() {
      await host.kill();
      await bootAgain();
    },
    async lease(pool, address) {
      await machine.sh(
        `mkdir -p ${kept}/pools/${pool}; printf 'c-${address}\\r\\neth0' > ${kept}/pools/${pool}/${address}`,
      );
    },
    async unlease(pool, address) {
      await machine.sh(`rm ${kept}/pools/${pool}/${address}`);
    },
  };
  return host;
}
