/**
 * Open vSwitch in a machine, as Debian starts it: the database server and ovs-vswitchd, with their sockets in
 * /run/openvswitch.
 *
 *     await using ovs = await startOpenVswitch(machine);
 *     await ovs.vsctl("add-br", "ovs0", "--", "set", "bridge", "ovs0", "datapath_type=netdev");
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir, uptime } from "node:os";
import { join } from "node:path";
import { Running } from "./dhcp/running.ts";
import { isListening } from "./listening.ts";
import type { Container, Machine, Service } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

export interface OvsOptions {
  /** Its namespace; the machine's own if this is left out. */
  in?: Container;
  /** Where its sockets and its database are. */
  directory?: string;
}

/** A minute for ADD, which waits 3 s by default until its port is added: Open vSwitch may take longer on a busy machine. */
export const PATIENT = { link_state_check_retries: 100 };

const DIRECTORY = "/run/openvswitch", SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema";

export class OpenVswitch implements Service {
  private readonly logs = mkdtempSync(join(tmpdir(), "patchbay-ovs-"));
  private readonly directory: string;
  private database: Running | undefined;
  private switching: Running | undefined;
  private isDatabaseStopped = false;
  private asked = 0;

  constructor(private readonly machine: Machine, private readonly options: OvsOptions) {
    this.directory = options.directory ?? DIRECTORY;
    machine.services.add(this);
  }

  /** Whether the database can be asked. */
  get answers(): boolean {
    return this.database !== undefined && !this.database.hasEnded && !this.isDatabaseStopped;
  }

  get socket(): string {
    return `${this.directory}/db.sock`;
  }

  private start(name: string, command: readonly string[]): Running {
    const env = { OVS_RUNDIR: this.directory, OVS_LOGDIR: this.directory, OVS_DBDIR: this.directory };
    const place = { machine: this.machine, in: this.options.in };
    return Running.start(place, command, { log: join(this.logs, name), env });
  }

  async startDatabase(): Promise<void> {
    const { directory, socket } = this, file = `${directory}/conf.db`;
    await this.machine.sh(`mkdir -p ${directory}; [ -e ${file} ] || ovsdb-tool create ${file} ${SCHEMA}`);
    const command = [file, `--remote=punix:${socket}`, `--unixctl=${directory}/ovsdb-server.ctl`];
    const database = this.database = this.start("ovsdb-server", ["ovsdb-server", ...command]);
    await database.until(() => isListening(database, socket));
    await this.vsctl("--no-wait", "init");
  }

  async startSwitch(): Promise<void> {
    // Its count of processors is 0 in the first ten seconds after a boot: then nobody takes packets from the kernel.
    await untilTrue(() => uptime() > 11, Boolean);
    // Where this kernel has no module, Open vSwitch says so at every turn.
    const command = ["ovs-vswitchd", `unix:${this.socket}`, `--unixctl=${this.directory}/ovs-vswitchd.ctl`];
    this.switching = this.start("ovs-vswitchd", command);
    await this.switching.until(() => isListening(this.switching!, `${this.directory}/ovs-vswitchd.ctl`));
  }

  async stopDatabase(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.database?.stop(signal);
  }

  async stopSwitch(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    await this.switching?.stop(signal);
  }

  /** SIGSTOP and SIGCONT. */
  signal(which: "database" | "switch", name: NodeJS.Signals): void {
    if (which === "database") this.isDatabaseStopped = name === "SIGSTOP";
    (which === "database" ? this.database : this.switching)!.signal(name);
  }

  async vsctl(...args: readonly string[]): Promise<string> {
    const command = ["ovs-vsctl", "--timeout=60", `--db=unix:${this.socket}`, ...args];
    const { code, stdout, stderr } = await this.machine.run(command, { in: this.options.in });
    if (code !== 0) throw new Error(`ovs-vsctl ${args.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** When the database has been away, ovs-vswitchd comes back seconds later. */
  async untilConfigured(): Promise<void> {
    await this.vsctl("set", "Open_vSwitch", ".", `external_ids:asked=${++this.asked}`);
  }

  /** Makes a bridge that works on every kernel. */
  async addBridge(name: string): Promise<void> {
    await this.vsctl("add-br", name, "--", "set", "bridge", name, "datapath_type=netdev");
  }

  async portsOf(bridge: string): Promise<string[]> {
    return (await this.vsctl("list-ports", bridge)).split("\n").filter(Boolean);
  }

  /** The columns of a row, by their names. */
  async row(table: "Port" | "Interface" | "Bridge", name: string): Promise<Record<string, unknown>> {
    const { headings, data } = JSON.parse(await this.vsctl("--format=json", "list", table, name));
    return Object.fromEntries(headings.map((heading: string, index: number) => [heading, data[0][index]]));
  }

  /** Every row of ports and interfaces: nothing of a container may be left in them. */
  async rows(): Promise<string[]> {
    const list = ["--columns=name", "list"];
    const names = await this.vsctl("--no-wait", "--bare", "--", ...list, "Port", "--", ...list, "Interface");
    return names.split("\n").filter(Boolean).sort();
  }

  async holds(): Promise<string[]> {
    return (await this.rows()).map((name) => `row ${name} of Open vSwitch`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.machine.services.delete(this)) return;
    for (const one of [this.switching, this.database]) {
      if (one !== undefined && !one.hasEnded) one.signal("SIGCONT");
      await one?.stop("SIGKILL");
    }
    rmSync(this.logs, { recursive: true });
  }
}

export async function startOpenVswitch(machine: Machine, options: OvsOptions = {}): Promise<OpenVswitch> {
  const ovs = new OpenVswitch(machine, options);
  await ovs.startDatabase();
  await ovs.startSwitch();
  return ovs;
}
