/** A machine with an engine in Go as its agent, where a first container has come and gone. */
import { readdirSync } from "node:fs";
import { pluginNames } from "../../../src/plugins/table.ts";
import { type Moment, quietMoment } from "../leftovers.ts";
import { type Container, type Machine, openMachine } from "../machine.ts";
import { PATCHBAY } from "../plugins.ts";
import { type Attached, type GoAnswer, type GoCall, GoEngine } from "./go-engine.ts";
import { type EngineInGo, HOST_IP } from "./go-networks.ts";

/** What stays when the machine boots. */
const DISK = "/var/lib/node";
export const PLUGINS = `${DISK}/plugins`;
const NETWORKS = `${DISK}/networks`;

/** Links that a kernel has in every namespace cannot be deleted. */
const reboot = `
for link in $(ip -o link show | sed 's/^[0-9]*: //; s/[:@].*//'); do ip link del $link 2>/dev/null || true; done
nft flush ruleset
umount -l /run/netns
find /run -mindepth 1 -delete
mkdir /run/netns
`;

/** What as many calls without a result answer. */
export const fine = (count: number) => Array<object>(count).fill({});

export class GoNode implements AsyncDisposable {
  go!: GoEngine;
  moment!: Moment;
  readonly #numbers = new Map<Container, number>();
  #next = 0;

  private constructor(readonly machine: Machine, readonly engine: EngineInGo) {}

  /** `foreign`: plugins that are scripts, by name. */
  static async open(engine: EngineInGo, foreign: Readonly<Record<string, string>> = {}): Promise<GoNode> {
    const node = new GoNode(await openMachine(), engine);
    try {
      await node.#prepare(foreign);
    } catch (error) {
      await node[Symbol.asyncDispose]();
      throw error;
    }
    return node;
  }

  async #prepare(foreign: Readonly<Record<string, string>>): Promise<void> {
    const { machine, engine } = this, { file = {}, prefix = "" } = engine;
    const links = pluginNames.map((name) => `ln -s ${PATCHBAY} ${PLUGINS}/${prefix}${name}`);
    await machine.sh(
      [
        `mkdir -p ${PLUGINS} ${NETWORKS}; cat >${NETWORKS}/10-net.conflist; ip addr add ${HOST_IP}/32 dev lo`,
        ...links,
      ].join("\n"),
      { stdin: JSON.stringify(file) },
    );
    for (const [name, script] of Object.entries(foreign)) {
      await machine.sh(`cat >${PLUGINS}/${name}; chmod +x ${PLUGINS}/${name}`, { stdin: script });
    }
    await this.#boot();
    // Bridges and base chains stay after the first.
    const first = await this.containers(1);
    this.expectFine([...await this.attach(first), ...await this.all("remove", first)]);
    await this.endContainers();
    this.moment = await quietMoment(machine);
  }

  async #boot(): Promise<void> {
    const { perBoot } = this.engine;
    if (perBoot !== undefined) {
      await this.machine.sh(`mkdir -p $(dirname ${perBoot.path}); cat >${perBoot.path}`, { stdin: perBoot.text });
    }
    await this.startAgent();
  }

  async startAgent(): Promise<void> {
    const { networks, leastNetworks } = this.engine;
    this.go = new GoEngine(this.machine, { plugins: [PLUGINS], networks, leastNetworks, directory: NETWORKS });
    this.expectFine([await this.go.one({ call: "status" })]);
  }

  async restartAgent(): Promise<void> {
    await this.go.kill();
    await this.startAgent();
  }

  /** Only what is on disk stays, and the containers' namespaces are made anew. */
  async reboot(): Promise<void> {
    await this.go.kill();
    const containers = [...this.#numbers];
    await this.endContainers();
    await this.machine.sh(reboot);
    for (const [{ name }, number] of containers) this.#numbers.set(await this.machine.container(name), number);
    await this.#boot();
  }

  async containers(count: number): Promise<Container[]> {
    const made: Container[] = [];
    for (let left = count; left > 0; left--) {
      const container = await this.machine.container(`c${this.#next}`);
      this.#numbers.set(container, this.#next++);
      made.push(container);
    }
    return made;
  }

  /** The containers that there are now. */
  get running(): Container[] {
    return [...this.#numbers.keys()];
  }

  async endContainers(): Promise<void> {
    for (const container of this.running) await this.machine.removeContainer(container);
    this.#numbers.clear();
  }

  numberOf(container: Container): number {
    return this.#numbers.get(container)!;
  }

  idOf(container: Container): string {
    return `6b235529-8111-4bbe-520b-d639b1d2${String(this.numberOf(container)).padStart(4, "0")}`;
  }

  /** `netns` instead of the containers' own. */
  callsOf(call: string, containers: readonly Container[], netns?: string): GoCall[] {
    return containers.map((one) => ({
      call,
      id: this.idOf(one),
      netns: netns ?? one.netnsPath,
      ...this.engine.ofContainer?.(this.idOf(one), this.numberOf(one)),
    }));
  }

  all(call: string, containers: readonly Container[], netns?: string): Promise<GoAnswer[]> {
    return this.go.all(this.callsOf(call, containers, netns));
  }

  /** Their results: each is attached. */
  async attached(containers: readonly Container[], call?: "setup serially"): Promise<Attached[]> {
    const answers = call === undefined ? await this.attach(containers) : await this.all(call, containers);
    this.expectFine(answers);
    return answers.map(({ result }) => result);
  }

  async attach(containers: readonly Container[]): Promise<GoAnswer[]> {
    if (this.engine.removesFirst) this.expectFine(await this.all("remove", containers, ""));
    return await this.all("setup", containers);
  }

  /** Containers of which a plugin has begun to make something. */
  begun(containers: readonly Container[]): number {
    const top = `/proc/${this.machine.pid}/root/run/patchbay`;
    const files = readdirSync(top, { recursive: true, encoding: "utf8" });
    return containers.filter((one) => files.some((path) => path.includes(`/${this.idOf(one)}@`))).length;
  }

  /** What `patchbay inspect` finds missing or altered; empty when all is as it was made. */
  async differences(): Promise<string> {
    const { code, stdout, stderr } = await this.machine.run([PATCHBAY, "inspect"]);
    return code === 0 ? stderr : stdout + stderr;
  }

  expectFine(answers: readonly GoAnswer[]): void {
    for (const { error } of answers) if (error !== undefined) throw new Error(error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.go?.[Symbol.asyncDispose]();
    await this.machine[Symbol.asyncDispose]();
  }
}
