/** Debian's etcd in a machine: one member, or several that are one cluster. Its files are in memory. */
import type { CertificateFiles } from "./certificates.ts";
import type { Container, Machine, RunOptions } from "./machine.ts";
import { untilTrue } from "./until-true.ts";

export interface EtcdMember {
  name: string;
  /** In which network; the machine's own without it. */
  in?: Container;
  /** `127.0.0.1` */
  address: string;
  port?: number;
}

export interface EtcdSetup {
  members: readonly EtcdMember[];
  /** With TLS: the servers' certificate, and whose certificates clients must have. */
  tls?: CertificateFiles & { caFile: string };
  options?: readonly string[];
}

type Running = ReturnType<Machine["start"]>;

export class Etcd implements AsyncDisposable {
  private readonly running = new Map<string, Running>();

  private constructor(readonly machine: Machine, private readonly setup: EtcdSetup) {}

  /** No member runs yet. */
  static prepare(machine: Machine, setup: EtcdSetup): Etcd {
    return new Etcd(machine, setup);
  }

  static async start(machine: Machine, setup: EtcdSetup): Promise<Etcd> {
    const etcd = Etcd.prepare(machine, setup);
    for (const { name } of setup.members) etcd.begin(name);
    await etcd.untilReady();
    return etcd;
  }

  get endpoints(): string[] {
    return this.setup.members.map((member) => this.endpointOf(member));
  }

  endpoint(name: string): string {
    return this.endpointOf(this.member(name));
  }

  begin(name: string): void {
    const member = this.member(name), own = this.endpointOf(member), { tls, members, options = [] } = this.setup;
    const peer = this.peerOf(member);
    const line = [
      ...["etcd", "--name", name, "--data-dir", dataOf(name), "--log-level", "warn", "--logger", "zap"],
      ...["--listen-client-urls", own, "--advertise-client-urls", own],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
      ...["--initial-cluster", members.map((one) => `${one.name}=${this.peerOf(one)}`).join(",")],
      ...tls === undefined ? [] : [
        ...["--cert-file", tls.certFile, "--key-file", tls.keyFile, "--trusted-ca-file", tls.caFile],
        ...["--client-cert-auth", "--peer-client-cert-auth"],
        ...["--peer-cert-file", tls.certFile, "--peer-key-file", tls.keyFile, "--peer-trusted-ca-file", tls.caFile],
      ],
      ...options,
    ];
    // What it says nobody reads: a full pipe would stop it.
    const script = 'log=$1; shift; exec "$@" >>"$log" 2>&1';
    const inside = member.in === undefined ? [] : ["nsenter", `--net=${member.in.netnsPath}`];
    this.running.set(name, this.machine.start([...inside, "sh", "-c", script, "sh", `${dataOf(name)}.log`, ...line]));
  }

  /** Until it answers, or all do. */
  async untilReady(endpoints: readonly string[] = this.endpoints): Promise<void> {
    const ask = () => this.ctl(["endpoint", "health", `--endpoints=${endpoints.join(",")}`, "--command-timeout=1s"]);
    await untilTrue(ask, ({ code }) => code === 0);
  }

  /** By its own client, which asks the first member that answers. */
  ctl(words: readonly string[], { stdin }: Pick<RunOptions, "stdin"> = {}) {
    const { tls } = this.setup, at = words.some((word) => word.startsWith("--endpoints="));
    return this.machine.run([
      "etcdctl",
      ...at ? [] : [`--endpoints=${this.endpoints.join(",")}`],
      ...tls === undefined ? [] : [`--cacert=${tls.caFile}`, `--cert=${tls.certFile}`, `--key=${tls.keyFile}`],
      ...words,
    ], { env: { ETCDCTL_API: "3" }, ...stdin !== undefined && { stdin } });
  }

  /** Like `ctl`, of what must succeed. Returns what it prints. */
  async done(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.ctl(words);
    if (code !== 0) throw new Error(`etcdctl ${words.join(" ")}: ${stderr || stdout}`);
    return stdout;
  }

  signal(name: string, signal: NodeJS.Signals): void {
    this.running.get(name)!.kill(signal);
  }

  async kill(name: string): Promise<void> {
    const running = this.running.get(name);
    if (running === undefined) return;
    this.running.delete(name);
    running.kill("SIGKILL");
    await running.exited;
  }

  /** As `etcdctl snapshot restore` makes it of a file, by the same names and addresses. The member is not running. */
  async restore(name: string, snapshot: string): Promise<void> {
    const { members } = this.setup, own = this.peerOf(this.member(name));
    const { code, stderr } = await this.machine.run([
      ...["sh", "-c", 'rm -rf "$1"; shift; exec "$@"', "sh", dataOf(name)],
      ...["etcdctl", "snapshot", "restore", snapshot, "--data-dir", dataOf(name), "--name", name],
      ...["--initial-cluster", members.map((one) => `${one.name}=${this.peerOf(one)}`).join(",")],
      ...["--initial-advertise-peer-urls", own],
    ], { env: { ETCDCTL_API: "3" } });
    if (code !== 0) throw new Error(stderr);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const name of [...this.running.keys()]) await this.kill(name);
  }

  private member(name: string): EtcdMember {
    return this.setup.members.find((member) => member.name === name)!;
  }

  private peerOf({ address, port = 2379 }: EtcdMember): string {
    return `${this.setup.tls === undefined ? "http" : "https"}://${address}:${port + 1}`;
  }

  private endpointOf({ address, port = 2379 }: EtcdMember): string {
    return `${this.setup.tls === undefined ? "http" : "https"}://${address}:${port}`;
  }
}

function dataOf(name: string): string {
  return `/var/lib/etcd-${name}`;
}
