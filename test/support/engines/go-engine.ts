/**
 * An engine in Go (test/real-engines/go-cni/engine.go), built with Debian's go-cni and libcni: it calls plugins in a machine,
 * stays between its calls as engines do, and can be killed in the middle of them.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { textOf } from "../if-there.ts";
import { type Machine, processesOf } from "../machine.ts";
import { needs } from "../needs.ts";
import { PATCHBAY } from "../plugins.ts";
import { untilTrue } from "../until-true.ts";

needs("go-cni");

const SOURCE = resolve(import.meta.dir, "../../real-engines/go-cni/engine.go");

/** PATCHBAY_TEST_GO_ENGINE names a build of the same source with other versions of the libraries. */
let built = process.env.PATCHBAY_TEST_GO_ENGINE;

/** Built once for each state of the source, without a network; test files run side by side, so another may be first. */
function program(): string {
  if (built !== undefined) return built;
  const digest = Bun.hash(readFileSync(SOURCE)).toString(16);
  const directory = resolve(PATCHBAY, "../test-go-engine"), path = `${directory}/engine-${digest}`;
  if (!existsSync(path)) {
    const own = `${directory}/${process.pid}`;
    mkdirSync(own, { recursive: true });
    const { exitCode, stderr } = Bun.spawnSync(
      ["/usr/lib/go-1.19/bin/go", "build", "-trimpath", "-o", `${own}/engine`, SOURCE],
      {
        env: {
          PATH: "/usr/bin:/bin",
          HOME: own,
          GO111MODULE: "off",
          GOPATH: "/usr/share/gocode",
          GOCACHE: `${own}/cache`,
          CGO_ENABLED: "0",
        },
      },
    );
    if (exitCode !== 0) throw new Error(`the engine in Go does not build: ${stderr}`);
    renameSync(`${own}/engine`, path);
    rmSync(own, { recursive: true, force: true });
  }
  return built = path;
}

export interface Settings {
  library?: "go-cni" | "libcni";
  plugins: readonly string[];
  /** What the names of interfaces in containers begin with. */
  prefix?: string;
  /** How many networks there must be. */
  leastNetworks?: number;
  /** Network configuration lists in their order; "loopback" is go-cni's own, "directory" the first file of `directory`. */
  networks: readonly (object | "loopback" | "directory")[];
  directory?: string;
}

export interface GoCall {
  call: string;
  id?: string;
  netns?: string;
  /** CNI_ARGS. */
  labels?: Record<string, string>;
  capabilities?: {
    portMappings?: { hostPort: number; containerPort: number; protocol: string; hostIP?: string }[];
    bandwidth?: { ingressRate: number; ingressBurst: number; egressRate: number; egressBurst: number };
    ipRanges?: { subnet: string }[];
    dns?: { servers?: string[]; searches?: string[]; options?: string[] };
    ips?: string[];
  };
  directory?: string;
  owner?: string;
}

export interface GoAnswer {
  error?: string;
  // deno-lint-ignore no-explicit-any
  result?: any;
}

/** go-cni's result of a container. */
export interface Attached {
  Interfaces: Record<string, { Mac: string; Sandbox: string; IPConfigs: { IP: string; Gateway: string }[] | null }>;
  DNS: { nameservers?: string[]; search?: string[] }[];
}

export class GoEngine implements AsyncDisposable {
  readonly #process;
  readonly #output;
  #unread = "";

  constructor(readonly machine: Machine, readonly settings: Settings) {
    const given = { library: "go-cni", prefix: "eth", leastNetworks: 1, ...settings };
    this.#process = machine.start([program(), JSON.stringify(given)]);
    this.#output = this.#process.stdout.getReader();
  }

  /** Calls at the same time; the answers are in their order. */
  async all(calls: readonly GoCall[]): Promise<GoAnswer[]> {
    this.begin(calls);
    const decoder = new TextDecoder();
    while (!this.#unread.includes("\n")) {
      const { value } = await this.#output.read();
      if (value === undefined) throw new Error(`the engine ended: ${await this.#process.stderr.text()}`);
      this.#unread += decoder.decode(value, { stream: true });
    }
    const [line, ...rest] = this.#unread.split("\n");
    this.#unread = rest.join("\n");
    return JSON.parse(line!);
  }

  async one(call: GoCall): Promise<GoAnswer> {
    return (await this.all([call]))[0]!;
  }

  /** Does not wait for answers. */
  begin(calls: readonly GoCall[]): void {
    this.#process.stdin.write(JSON.stringify(calls) + "\n");
    this.#process.stdin.flush();
  }

  /** Plugins that run go on without it. */
  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process.stdin.end();
    await this.#process.exited;
  }
}

/** Returns when no plugin runs any more; a resident stays. */
export async function untilNoPlugins(machine: Machine): Promise<void> {
  const isResident = (pid: number) => textOf(`/proc/${pid}/cmdline`).includes("\0serve\0");
  const plugins = () =>
    processesOf(machine).filter(({ pid, what }) => what.endsWith("/patchbay") && !isResident(pid));
  await untilTrue(plugins, ({ length }) => length === 0);
}
