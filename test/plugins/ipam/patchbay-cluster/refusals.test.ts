/** Why patchbay-cluster gives nothing: what ADD says of it, what STATUS says before, and what is left for the agent. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorText } from "../../../../src/cni/error.ts";
import { closeFile } from "../../../../src/ffi/files.ts";
import { tryLockExclusive } from "../../../../src/process/lock.ts";
import { preciseSecondsSinceBoot } from "../../../../src/ffi/clock.ts";
import { PoolStage } from "../../../support/pool-stage.ts";
import type { GivenPool } from "../../../support/served-pool.ts";

let stage: PoolStage, agent: number | undefined;
beforeEach(() => void (stage = new PoolStage()));
afterEach(() => {
  endAgent();
  stage[Symbol.dispose]();
});

/** As far as ADD can see it: it holds its lock. */
function startAgent(): void {
  mkdirSync(stage.state, { recursive: true, mode: 0o700 });
  agent = openSync(join(stage.state, "node~lock"), "w", 0o600);
  expect(tryLockExclusive(agent)).toBe(true);
}

function endAgent(): void {
  if (agent !== undefined) closeFile(agent);
  agent = undefined;
}

function said(work: () => unknown): string {
  try {
    return `success: ${JSON.stringify(work())}`;
  } catch (error) {
    return `${(error as { code?: number }).code} ${errorText(error)}`;
  }
}

const addSays = (given?: Parameters<PoolStage["add"]>[0]) => said(() => stage.add(given));
const statusSays = (given?: Parameters<PoolStage["add"]>[0]) => said(() => stage.status(given));
const requestSays = (address: string) => addSays({ cniArgs: `IP=${address}` });

/** What the agent finds, without the time. */
function wish(pool = "lan"): object {
  const { at, ...rest } = JSON.parse(readFileSync(join(stage.state, `wish~${pool}`), "utf8"));
  expect(at).toBeLessThanOrEqual(preciseSecondsSinceBoot());
  return rest;
}

const NO_AGENT = "'patchbay node' does not run on this host ('systemctl start patchbay-node' starts it)";
const SHOW = "'patchbay pool show lan' says who has its blocks";
const none = { served: 0, ripening: 0, closing: 0, unknown: 0 };

describe("nothing has been served since the boot", () => {
  const what = "pool lan: nothing of it has been served on this host since the boot; ";

  test("without an agent, and without a state directory", () => {
    expect(addSays()).toBe(`11 ${what}${NO_AGENT}`);
    expect(statusSays()).toBe(`50 ${what}${NO_AGENT}`);
  });

  test("with one that has not joined", () => {
    startAgent();
    const why =
      "'patchbay node' looks for it now: try again; when that does not help, it has not joined the cluster ('patchbay " +
      "node check'), or there is no such pool ('patchbay pool list')";
    expect(addSays()).toBe(`11 ${what}${why}`);
    expect(wish()).toEqual({ pool: "lan" });
    expect(statusSays()).toBe(`50 ${what}${why}`);
    expect(said(() => stage.foresee())).toBe(`11 ${what}${why}`);
  });
});

describe("no block is served", () => {
  const what = "this node n1 has no block of it to give addresses out of; ";
  const since = Math.floor(preciseSecondsSinceBoot()) - 1;
  const cases: [string, GivenPool["change"], number, RegExp | string, "STATUS fails" | "STATUS succeeds"][] = [
    ["one may come", {}, 11, "another block is being claimed", "STATUS succeeds"],
    ["one ripens", { blocks: { ...none, ripening: 1 } }, 11, "1 block is not ripe yet", "STATUS fails"],
    [
      "the node is draining",
      { obstacle: "node n1 is draining", blocks: { ...none, closing: 2 } },
      999,
      "no further block comes: node n1 is draining; 2 blocks are being given back",
      "STATUS fails",
    ],
    [
      "there is an alarm, and blocks are not ripe",
      { obstacle: "n2 has raised the alarm", blocks: { ...none, ripening: 3 } },
      11,
      "no further block comes: n2 has raised the alarm; 3 blocks are not ripe yet",
      "STATUS fails",
    ],
    [
      "the store is silent",
      { silent: { since, why: "connection refused" } },
      11,
      /^no further block comes: etcd at https:\/\/10\.0\.0\.1:2379 has not answered for \d+ s \(connection refused\)$/,
      "STATUS fails",
    ],
    [
      "nobody knows which addresses are in use",
      { blocks: { ...none, unknown: 2 } },
      11,
      "2 blocks are not served before the next boot: nobody knows which addresses containers have; " +
      "another block is being claimed",
      "STATUS succeeds",
    ],
  ];
  test.each(cases)("%s", (_, change, code, why, status) => {
    startAgent();
    stage.serve({ blocks: [], change });
    const [start, end] = [`${code} pool lan (10.50.0.0/24): ${what}`, `; ${SHOW}`], added = addSays();
    expect(added).toStartWith(start);
    expect(added).toEndWith(end);
    expect(added.slice(start.length, -end.length)).toMatch(
      why instanceof RegExp ? why : new RegExp(`^${escaped(why)}$`),
    );
    expect(wish()).toEqual({ pool: "lan" });
    const succeeds = status === "STATUS succeeds";
    expect(statusSays()).toStartWith(succeeds ? "success" : `50 pool lan: ${what}`);
  });

  test("the agent has ended", () => {
    startAgent();
    stage.serve({ blocks: [] });
    endAgent();
    expect(addSays()).toBe(`11 pool lan (10.50.0.0/24): ${what}no further block comes: ${NO_AGENT}; ${SHOW}`);
    expect(statusSays()).toStartWith("50 ");
  });
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

describe("every address is in use", () => {
  const what = "pool lan (10.50.0.0/24): 16 of 16 addresses in the 1 block of this node n1 are in use; ";
  const fill = (change: GivenPool["change"] = {}) => {
    startAgent();
    stage.serve();
    for (let count = 0; count < 16; count++) stage.add({ containerId: `x${count}` });
    stage.serve({ change });
  };
  const cases: [string, GivenPool["change"], number, string][] = [
    ["another block may come", {}, 11, "another block is being claimed"],
    ["every block has an owner", { isFull: true }, 11, "no further block comes: each of its blocks has an owner"],
    ["the pool is closed", { obstacle: "it is closed" }, 999, "no further block comes: it is closed"],
  ];
  test.each(cases)("%s; STATUS does not call the node broken for it", (_, change, code, why) => {
    fill(change);
    expect(addSays()).toBe(`${code} ${what}${why}; ${SHOW}`);
    expect(said(() => stage.foresee())).toBe(`${code} ${what}${why}; ${SHOW}`);
    expect(statusSays()).toStartWith("success");
    stage.del({ containerId: "x7" });
    expect(stage.add().ips).toMatchObject([{ address: "10.50.0.23/24" }]);
  });

  test("also by what people have put there, until it is removed", () => {
    fill();
    stage.del({ containerId: "x7" });
    const path = join(stage.pool(), "10.50.0.23");
    writeFileSync(path, "printer");
    expect(addSays()).toStartWith(`11 ${what}`);
    rmSync(path);
    expect(stage.add().ips).toMatchObject([{ address: "10.50.0.23/24" }]);
  });
});

describe("an address that is asked for", () => {
  beforeEach(startAgent);

  test("is given where it is served, also by its capability and args, and foreseen", () => {
    stage.serve();
    expect(stage.foresee({ cniArgs: "IP=10.50.0.21" }).ips).toEqual([
      { address: "10.50.0.21/24", gateway: "10.50.0.254" },
    ]);
    expect(stage.leases()).toEqual({});
    stage.add({ cniArgs: "IgnoreUnknown=1;K8S_POD_NAME=x;IP=10.50.0.21" });
    stage.add({ containerId: "c2", rest: { runtimeConfig: { ips: ["10.50.0.22/24"] } } });
    stage.add({ containerId: "c3", rest: { args: { cni: { ips: ["10.50.0.23"] } } } });
    expect(Object.keys(stage.leases())).toEqual(["10.50.0.21", "10.50.0.22", "10.50.0.23"]);
  });

  test("somebody has it, or people keep it", () => {
    stage.serve();
    stage.add({ network: "other", cniArgs: "IP=10.50.0.21" });
    writeFileSync(join(stage.pool(), "10.50.0.22"), "printer in room 5");
    expect(requestSays("10.50.0.21")).toBe(
      "999 10.50.0.21 of pool lan is not available: container c1 of network other has it",
    );
    expect(requestSays("10.50.0.22")).toBe(
      `999 10.50.0.22 of pool lan is not available: ${stage.pool()}/10.50.0.22 reserves it`,
    );
    expect(said(() => stage.foresee({ cniArgs: "IP=10.50.0.21" }))).toStartWith("999 10.50.0.21 of pool lan");
  });

  test("its file was removed by hand: it is free", () => {
    stage.serve();
    stage.add({ cniArgs: "IP=10.50.0.21" });
    rmSync(join(stage.pool(), "10.50.0.21"));
    expect(stage.add({ containerId: "c2", cniArgs: "IP=10.50.0.21" }).ips).toMatchObject([
      { address: "10.50.0.21/24" },
    ]);
  });

  test("is in a block that is not served here: the agent is told which", () => {
    stage.serve();
    const what = "10.50.0.70 is in block 4 of pool lan, which this node n1 does not serve; ";
    expect(requestSays("10.50.0.70")).toBe(`11 ${what}unless it is another's, it is being claimed; ${SHOW}`);
    expect(wish()).toEqual({ pool: "lan", address: "10.50.0.70" });
    stage.serve({ change: { obstacle: "it is closed" } });
    expect(requestSays("10.50.0.70")).toBe(`999 ${what}no further block comes: it is closed; ${SHOW}`);
  });

  test("is another node's: the sentence names that one", () => {
    stage.serve({ change: { ofOthers: { "10.50.0.70": "n3" } } });
    expect(requestSays("10.50.0.70")).toBe(`11 10.50.0.70 of pool lan is given out by node n3; ${SHOW}`);
  });

  test("is a single: it is claimed first, and only who asks for it gets it", () => {
    const singles = (...served: string[]) => ({ change: { singles: { all: ["10.50.0.200"], served } } });
    stage.serve(singles());
    expect(requestSays("10.50.0.200")).toBe(
      `11 10.50.0.200 of pool lan is not this node n1's yet; it is being claimed: try again; ${SHOW}`,
    );
    expect(wish()).toEqual({ pool: "lan", address: "10.50.0.200" });
    stage.serve({ blocks: [], ...singles("10.50.0.200") });
    expect(addSays()).toStartWith("11 ");
    expect(stage.foresee({ cniArgs: "IP=10.50.0.200" }).ips).toEqual([
      { address: "10.50.0.200/24", gateway: "10.50.0.254" },
    ]);
    expect(stage.add({ cniArgs: "IP=10.50.0.200" }).ips).toEqual([
      { address: "10.50.0.200/24", gateway: "10.50.0.254" },
    ]);
    expect(said(() => stage.add({ containerId: "c2", cniArgs: "IP=10.50.0.200" }))).toStartWith(
      "999 10.50.0.200 of pool lan is not available: container c1 of network",
    );
    stage.del();
    expect(stage.leases()).toEqual({});
  });

  test("is never given: the gateway's, one that the pool excludes, one behind the last block", () => {
    const range = {
      cidr: "10.50.0.0/24",
      gateway: "10.50.0.17",
      from: "10.50.0.16",
      to: "10.50.0.50",
      blockSize: 16,
    };
    stage.serve({ ranges: [{ ...range, exclude: ["10.50.0.24/30"] }], blocks: [0] });
    expect(requestSays("10.50.0.17")).toBe("999 10.50.0.17 is a gateway of pool lan");
    expect(requestSays("10.50.0.26")).toBe(
      "999 10.50.0.26 is in a block of this node n1, but pool lan keeps it from use",
    );
    const outside = "is not in pool lan (10.50.0.16 to 10.50.0.47 of 10.50.0.0/24)";
    for (const address of ["10.50.0.48", "10.50.0.15", "10.9.9.9", "fd00::1"]) {
      expect(requestSays(address)).toBe(`999 ${address} ${outside}`);
    }
    expect(stage.leases()).toEqual({});
  });

  test("two of one family", () => {
    stage.serve();
    expect(addSays({ rest: { runtimeConfig: { ips: ["10.50.0.20", "10.50.0.21"] } } })).toBe(
      "999 a pool gives one address of each family, and 10.50.0.21 would be another",
    );
    expect(stage.leases()).toEqual({});
  });

  test("of two pools, each gives its own; in neither, both are named", () => {
    stage.serve();
    stage.serve({ name: "storage", ranges: [{ cidr: "10.60.0.0/24", blockSize: 8 }], blocks: [0] });
    const ipam = { pool: undefined, pools: ["lan", "storage"] },
      ask = (...ips: string[]) => ({ ipam, rest: { runtimeConfig: { ips } } });
    expect(stage.add(ask("10.60.0.5", "10.50.0.20")).ips?.map(({ address }) => address)).toEqual([
      "10.50.0.20/24",
      "10.60.0.5/24",
    ]);
    expect(addSays({ ...ask("10.70.0.1"), containerId: "c2" })).toBe(
      "999 10.70.0.1 is not in pool lan (10.50.0.0 to 10.50.0.255 of 10.50.0.0/24), " +
        "nor in storage (10.60.0.1 to 10.60.0.248 of 10.60.0.0/24)",
    );
  });
});
