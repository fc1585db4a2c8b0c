/** The file that says what is served: whatever is at its path, and a thousand blocks in it. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorText } from "../../../../src/cni/error.ts";
import { PoolStage } from "../../../support/pool-stage.ts";

let stage: PoolStage;
beforeEach(() => void (stage = new PoolStage()));
afterEach(() => stage[Symbol.dispose]());

function said(work: () => unknown): string {
  try {
    return `success: ${JSON.stringify(work())}`;
  } catch (error) {
    return `${(error as { code?: number }).code} ${errorText(error)}`;
  }
}

describe("a file that is not to be believed", () => {
  const file = () => join(stage.state, "pool~lan");
  const spoilings: [string, () => void, code: number, RegExp][] = [
    [
      "torn",
      () => writeFileSync(file(), readFileSync(file(), "utf8").slice(0, 200)),
      11,
      /pool~lan: JSON Parse error/,
    ],
    ["empty", () => writeFileSync(file(), ""), 11, /pool~lan: JSON Parse error/],
    [
      "of another version",
      () => writeFileSync(file(), '{"format":2}'),
      11,
      /it is of another version of this program/,
    ],
    [
      "with what is no address",
      () => writeFileSync(file(), readFileSync(file(), "utf8").replace("0a320010", "first...")),
      11,
      /requires a string containing only/,
    ],
    ["writable by others", () => chmodSync(file(), 0o622), 5, /it belongs to uid \d+ with mode 0622/],
    ["a link", () => (rmSync(file()), symlinkSync("/etc/hostname", file())), 5, /it is a symbolic link/],
    ["a FIFO", () => (rmSync(file()), Bun.spawnSync(["mkfifo", file()])), 5, /it is a FIFO/],
    ["a directory", () => (rmSync(file()), mkdirSync(file())), 5, /it is a directory/],
    ["larger than any", () => writeFileSync(file(), " ".repeat(2 ** 20 + 1)), 5, /file too large/],
    ["where others can put one", () => chmodSync(stage.state, 0o777), 5, /run is not trusted/],
  ];
  test.each(spoilings)("%s: DEL goes on", (_, spoil, code, says) => {
    stage.serve();
    stage.add({ containerId: "before" });
    spoil();
    for (const [text, expected] of [[said(() => stage.add()), code], [said(() => stage.status()), 50]] as const) {
      expect(text).toStartWith(`${expected} pool lan: what is served of it on this host cannot be used: `);
      expect(text).toMatch(says);
      expect(text).toEndWith("; 'systemctl restart patchbay-node' writes it anew");
    }
    stage.del({ containerId: "before" });
    expect(stage.leases()).toEqual({});
    chmodSync(stage.state, 0o700);
  });

  test("of another pool, under this one's name", () => {
    stage.serve({ name: "storage", ranges: [{ cidr: "10.60.0.0/24", blockSize: 8 }], blocks: [0] });
    writeFileSync(file(), readFileSync(join(stage.state, "pool~storage")), { mode: 0o600 });
    expect(said(() => stage.add())).toContain('pool~lan: it is of pool "storage"');
  });
});

test("a node with a thousand blocks: each address is given once", () => {
  const blocks = Array.from({ length: 1024 }, (_, index) => index * 3);
  const ranges = [{ cidr: "10.96.0.0/16", gateway: "10.96.255.254", from: "10.96.0.1", blockSize: 1 }];
  stage.serve({ ranges, blocks });
  const given = new Set<string>();
  for (let count = 0; count < 1024; count++) given.add(stage.add({ containerId: `c${count}` }).ips![0]!.address);
  expect(given.size).toBe(1024);
  const full = "11 pool lan (10.96.0.0/16): 1024 of 1024 addresses in the 1024 blocks of this node n1 are in use";
  expect(said(() => stage.add({ containerId: "late" }))).toStartWith(full);
  for (const count of [0, 512, 1023]) {
    stage.del({ containerId: `c${count}` });
    expect(given).toContain(stage.add({ containerId: `again${count}` }).ips![0]!.address);
  }
});

describe("leases where the agent does not look for them", () => {
  const pools = () => join(stage.directory, "pools");
  test("are refused with both directories, before anything is made", () => {
    stage.serve({ change: { leases: "/var/lib/patchbay/pools" } });
    const what =
      `"ipam.dataDir": the leases would be in ${pools()}/lan, and the agent of this host counts those in ` +
      "/var/lib/patchbay/pools; ";
    expect(said(() => stage.add())).toStartWith(`7 ${what}"dataDir": "/var/lib/patchbay/pools", or `);
    expect(said(() => stage.status())).toStartWith(`50 ${what}`);
    expect(existsSync(pools())).toBe(false);
  });

  test("a slash at the end is no other directory", () => {
    stage.serve({ change: { leases: pools() } });
    expect(said(() => stage.add({ ipam: { dataDir: `${pools()}//` } }))).toStartWith("success: ");
    expect(Object.keys(stage.leases())).toEqual(["10.50.0.16"]);
  });
});
