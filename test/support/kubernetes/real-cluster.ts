/**
 * Debian's etcd with real API servers before it, each of which remembers for itself. They take fixed ports, so this runs in a
 * network of its own.
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { type CertificateFiles, Certificates } from "../certificates.ts";
import { untilTrue } from "../until-true.ts";
import { askingOf, type ServerAtTest } from "./asking.ts";
import { kubeconfigOf } from "./fake-cluster.ts";

const ETCD = "http://127.0.0.1:2379", PORTS = [6443, 6444] as const;
const TOKENS = { admin: "the-administrators", stranger: "the-strangers" };

export class RealCluster implements AsyncDisposable {
  readonly certificates = new Certificates();
  private readonly authority = this.certificates.authority("cluster");
  private readonly tls = this.certificates.signedBy(this.authority, {
    names: ["IP:127.0.0.1", "DNS:kubernetes.default.svc"],
    commonName: "kube-apiserver",
  });
  private readonly data = join(this.certificates.directory, "etcd");
  private etcd?: Subprocess;
  private servers: Subprocess[] = [];

  private constructor(private readonly program: string) {}

  static async start(program: string): Promise<RealCluster> {
    const cluster = new RealCluster(program);
    cluster.certificates.file(
      "tokens",
      `${TOKENS.admin},admin,1,"system:masters"\n${TOKENS.stranger},stranger,2,"strangers"\n`,
    );
    try {
      await cluster.startEtcd();
      await cluster.startServers();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Each API server, of the same cluster. */
  get at(): ServerAtTest[] {
    const ca = readFileSync(this.authority.certFile, "utf8");
    return PORTS.map((port) => ({ url: `https://127.0.0.1:${port}`, ca, ...TOKENS }));
  }

  kubeconfig(name: string, user: object, more: object = {}, at = 0): string {
    const cluster = { "certificate-authority": this.authority.certFile, ...more };
    return this.certificates.file(name, kubeconfigOf(this.at[at]!.url, cluster, user));
  }

  /** A client's certificate. */
  certificateFor(user: string, group: string): CertificateFiles {
    return this.certificates.signedBy(this.authority, { names: ["DNS:client"], commonName: `${user}/O=${group}` });
  }

  async startEtcd(): Promise<void> {
    const peer = "http://127.0.0.1:2380";
    this.etcd = this.begin("etcd", [
      ...["etcd", "--name", "m1", "--data-dir", this.data, "--log-level", "warn", "--logger", "zap"],
      ...["--listen-client-urls", ETCD, "--advertise-client-urls", ETCD],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", `m1=${peer}`],
    ]);
    await untilTrue(() => this.ctl(["endpoint", "health"]), ({ exitCode }) => exitCode === 0);
  }

  async startServers(): Promise<void> {
    const { certFile, keyFile } = this.tls, accounts = join(this.certificates.directory, "accounts.key");
    // In the older form: this server reads no other.
    Bun.spawnSync(["openssl", ..."ecparam -name prime256v1 -genkey -noout -out".split(" "), accounts]);
    this.servers = PORTS.map((port) =>
      this.begin(`server-${port}`, [
        ...[this.program, "--bind-address=127.0.0.1", `--secure-port=${port}`, `--etcd-servers=${ETCD}`],
        ...[`--tls-cert-file=${certFile}`, `--tls-private-key-file=${keyFile}`],
        ...[`--client-ca-file=${this.authority.certFile}`, `--token-auth-file=${this.certificates.directory}/tokens`],
        ...["--service-account-issuer=https://kubernetes.default.svc", `--service-account-key-file=${accounts}`],
        ...[`--service-account-signing-key-file=${accounts}`, "--authorization-mode=Node,RBAC"],
        // It wants one that is not on loopback, and tells nobody.
        ...["--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none"],
        "--service-cluster-ip-range=10.96.0.0/24",
        `--cert-dir=${this.certificates.directory}/own-${port}`,
      ])
    );
    for (const [number, server] of this.at.entries()) {
      const ready = () => askingOf(server)("GET", "/readyz").catch(() => undefined);
      await untilTrue(ready, (answer) => answer?.status === 200 || this.servers[number]!.exitCode !== null);
      if (this.servers[number]!.exitCode !== null) throw new Error(this.said(`server-${PORTS[number]}`));
    }
  }

  async stopServers(): Promise<void> {
    for (const server of this.servers) await ended(server);
    this.servers = [];
  }

  /** While `work` runs, etcd does nothing. */
  async whileStopped<T>(work: () => Promise<T>): Promise<T> {
    this.etcd!.kill("SIGSTOP");
    try {
      return await work();
    } finally {
      this.etcd!.kill("SIGCONT");
    }
  }

  snapshot(name: string): void {
    this.done(["snapshot", "save", join(this.certificates.directory, name)]);
  }

  /** While the API servers go on, if they run. */
  async restore(name: string): Promise<void> {
    await ended(this.etcd!);
    rmSync(this.data, { recursive: true });
    const peer = ["--name=m1", "--initial-cluster=m1=http://127.0.0.1:2380"];
    const own = [...peer, "--initial-advertise-peer-urls=http://127.0.0.1:2380", `--data-dir=${this.data}`];
    this.done(["snapshot", "restore", join(this.certificates.directory, name), ...own]);
    await this.startEtcd();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopServers();
    if (this.etcd !== undefined) await ended(this.etcd);
    this.certificates[Symbol.dispose]();
  }

  private said(name: string): string {
    return readFileSync(join(this.certificates.directory, `${name}.log`), "utf8").slice(-2000);
  }

  private begin(name: string, command: string[]): Subprocess {
    const log = Bun.file(join(this.certificates.directory, `${name}.log`));
    return Bun.spawn(command, { stdin: "ignore", stdout: log, stderr: log });
  }

  private ctl(words: readonly string[]) {
    return Bun.spawnSync(["etcdctl", `--endpoints=${ETCD}`, "--command-timeout=1s", ...words], {
      env: { ...process.env, ETCDCTL_API: "3" },
    });
  }

  private done(words: readonly string[]): void {
    const { exitCode, stderr } = this.ctl(words);
    if (exitCode !== 0) throw new Error(`etcdctl ${words.join(" ")}: ${stderr}`);
  }
}

async function ended(child: Subprocess): Promise<void> {
  child.kill("SIGKILL");
  await child.exited;
}
