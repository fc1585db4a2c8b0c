/** Debian's runc and crun in a machine of their own, with the bundle of docs/engines/runc-crun.md. */
import { endGroup } from "../end-group.ts";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Outcome } from "../machine.ts";
import { untilTrue } from "../until-true.ts";
import { ENGINE, type EngineMachine } from "./engine-machine.ts";

const root = resolve(import.meta.dir, "../../..");
const BUNDLE = "/opt/web";

/** Where runc and crun write what they know, and where bundles are. */
export const OWN_FILES = /^[-+] file \/run\/(engine|runc|crun|hooks)/;

export interface Config {
  annotations: Record<string, string>;
  hooks: Record<string, { path: string; args: string[]; timeout?: number }[]>;
  linux: { namespaces: { type: string; path?: string }[] };
}

/** Kernels and containers differ in which cgroups they have to give: crun needs none, and runc one of its own. */
const flags = { runc: "", crun: " --cgroup-manager=disabled" };

/** A group without processes of its own below, in which containers get theirs. */
const join = 'mkdir -p "/sys/fs/cgroup/$0"; echo $$ >"/sys/fs/cgroup/$0/cgroup.procs"; exec "$@"';

/** A container that runs on would keep a test's pipe open. */
function quietly(command: string, said: string): string {
  return `${command} 2>${said} || { cat ${said} >&2; exit 1; }`;
}

export class OciRuntime {
  constructor(readonly room: EngineMachine, readonly name: keyof typeof flags) {}

  run(script: string): Promise<Outcome> {
    const command = ["sh", "-ec", script.replace(/\brunc\b(?= )/g, `${this.name}${flags[this.name]}`)];
    return this.room.machine.run(["sh", "-c", join, `${this.room.group}/callers`, ...command]);
  }

  /** A script that must succeed, in which runc stands for the runtime. */
  async succeed(script: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(script);
    if (code !== 0 || stderr !== "") throw new Error(`exit ${code}: ${stderr || stdout}\n${script}`);
    return stdout.trim();
  }

  /** Runs the page's first block as it is printed; answers what it printed. */
  async asPrinted(): Promise<string> {
    const page = readFileSync(`${root}/docs/engines/runc-crun.md`, "utf8");
    const block = /^```\n([^]*?)^```$/m.exec(page)![1]!;
    return await this.succeed(`
      cat >${ENGINE}/block <<'END'
cd ${root}
${block}
END
      ${quietly(`sh -e ${ENGINE}/block`, `${ENGINE}/said`)}`);
  }

  /** The page's bundle under another name, changed. */
  private async bundle(id: string, change: (config: Config) => void = () => {}): Promise<string> {
    const config = JSON.parse(readFileSync(`${root}/examples/oci/config.json`, "utf8"));
    config.root.path = `${BUNDLE}/rootfs`;
    change(config);
    const folder = `${BUNDLE}-${id}`;
    await this.room.machine.sh(
      `mkdir -p ${folder}; cat >${folder}/config.json`,
      { stdin: JSON.stringify(config) },
    );
    return folder;
  }

  async start(id: string, change?: (config: Config) => void): Promise<void> {
    await this.succeed(await this.#calling("run --detach", id, change));
  }

  async create(id: string, change?: (config: Config) => void): Promise<Outcome> {
    return await this.run(await this.#calling("create", id, change));
  }

  async #calling(command: string, id: string, change?: (config: Config) => void): Promise<string> {
    const bundle = await this.bundle(id, change);
    return quietly(`runc ${command} --bundle ${bundle} ${id} </dev/null >/dev/null`, `${bundle}/said`);
  }

  async pidOf(id: string): Promise<number> {
    return JSON.parse(await this.succeed(`runc state ${id}`)).pid;
  }

  /** Interfaces and IPv4 addresses: `eth0 10.77.0.2`. */
  async addressesOf(id: string): Promise<string[]> {
    const inside = `nsenter --net=/proc/${await this.pidOf(id)}/ns/net ip -o -4 addr show`;
    const lines = await this.room.machine.sh(inside);
    return [...lines.matchAll(/: (\S+) +inet ([0-9.]+)\//g)].map(([, link, address]) => `${link} ${address}`);
  }

  async killed(id: string): Promise<void> {
    const pid = await this.pidOf(id);
    await this.room.machine.sh(`kill -9 ${pid}`);
    await untilTrue(() => this.succeed(`runc state ${id}`), (text) => JSON.parse(text).status === "stopped");
  }

  /** Ends the runtime, its hooks and all containers, and forgets them as the runtime would after a boot. */
  async killEverything(): Promise<void> {
    const group = `/sys/fs/cgroup/${this.room.group}`;
    await this.room.machine.sh(`
      ${endGroup(group)}
      rm -rf /run/${this.name}`);
  }

  /** Containers and processes. */
  async left(): Promise<string[]> {
    return [await this.succeed("runc list -q"), ...this.room.processes()].filter((one) => one !== "");
  }
}
