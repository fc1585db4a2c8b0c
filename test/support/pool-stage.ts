/** patchbay-cluster in this process, with a state directory and leases of its own. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Result } from "../../src/cni/result.ts";
import type { Attachment } from "../../src/contract/plugin.ts";
import plugin from "../../src/plugins/ipam/patchbay-cluster/patchbay-cluster.ts";
import type { PatchbayClusterConf } from "../../src/plugins/ipam/patchbay-cluster/patchbay-cluster.schema.ts";
import { leaseFiles } from "./lease-directory.ts";
import { type GivenPool, serveIn } from "./served-pool.ts";

interface GivenCall {
  ipam?: Record<string, unknown>;
  rest?: Record<string, unknown>;
  containerId?: string;
  ifName?: string;
  network?: string;
  cniArgs?: string;
  prevResult?: Result;
}

export const POOLS_OF_TESTS = "pools";

export class PoolStage {
  readonly directory = mkdtempSync(join(tmpdir(), "patchbay-pools-"));
  readonly state = join(this.directory, "run");
  private readonly stateBefore = process.env["PATCHBAY_STATE_DIR"];

  constructor() {
    process.env["PATCHBAY_STATE_DIR"] = this.state;
  }

  [Symbol.dispose](): void {
    if (this.stateBefore === undefined) delete process.env["PATCHBAY_STATE_DIR"];
    else process.env["PATCHBAY_STATE_DIR"] = this.stateBefore;
    rmSync(this.directory, { recursive: true, force: true });
  }

  serve(given: GivenPool = {}) {
    return serveIn(this.state, given);
  }

  /** The directory of a pool's leases. */
  pool(name = "lan"): string {
    return join(this.directory, POOLS_OF_TESTS, name);
  }

  leases(name = "lan"): Record<string, string> {
    return leaseFiles(this.pool(name));
  }

  index(name = "lan"): string[] {
    return readdirSync(join(this.pool(name), ".patchbay")).sort();
  }

  conf({ ipam, rest, network = "net" }: GivenCall = {}): PatchbayClusterConf {
    const dataDir = join(this.directory, POOLS_OF_TESTS);
    const document = {
      cniVersion: "1.0.0",
      name: network,
      ipam: { type: "patchbay-cluster", dataDir, pool: "lan", ...ipam },
      ...rest,
    };
    // As a document, it has no keys without a value.
    return plugin.validate(JSON.parse(JSON.stringify(document)));
  }

  at(given: GivenCall = {}): Attachment<PatchbayClusterConf> {
    const { containerId = "c1", ifName = "eth0", network = "net", cniArgs = "", prevResult } = given;
    const inAdd = <Value>(work: () => Value) => work();
    const facts = { containerId, ifName, netnsPath: "/run/netns/c1", network };
    // IPAM plugins do not use the rest of an attachment.
    return { ...facts, conf: this.conf(given), cniArgs, prevResult, inAdd } as Attachment<PatchbayClusterConf>;
  }

  add(given?: GivenCall): Result {
    return plugin.add(this.at(given));
  }

  foresee(given?: GivenCall): Result {
    return plugin.foresee!(this.at(given));
  }

  del(given?: GivenCall): void {
    plugin.del!(this.at(given));
  }

  check(given?: GivenCall): string[] {
    return plugin.check!(this.at(given));
  }

  judge(conf: PatchbayClusterConf): void {
    plugin.judge!(conf, undefined);
  }

  status(given?: GivenCall): void {
    plugin.status!(this.conf(given), undefined as never, {});
  }

  gc(network: string, valid: readonly string[], ipam?: Record<string, unknown>): void {
    plugin.gc!(this.conf({ network, ipam }), ({ containerId }) => valid.includes(containerId), undefined as never);
  }
}
