/** A directory of leases that networks share: each lease says its network. */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { releaseAddresses, releaseInvalid } from "../../src/ipam/claims.ts";
import { removeLeaseDirectory } from "../../src/ipam/take-over.ts";
import { type LeaseDirectory, leaseDirectory } from "../support/lease-directory.ts";

const isValid = ({ containerId }: { containerId: string }) => containerId === "c1";

test("GC of a network releases its own leases alone", () => {
  using made = leaseDirectory();
  mkdirSync(made.path);
  const files = {
    "10.1.0.2": "c2\r\neth0\r\nnet",
    "10.1.0.3": "c2\r\neth0\r\nother",
    "10.1.0.4": "c2\r\neth0",
    "10.1.0.5": "c1\r\neth0\r\nnet",
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(made.path, name), content);
  releaseInvalid(made.options, isValid, "net");
  expect(Object.keys(made.files())).toEqual(["10.1.0.3", "10.1.0.4", "10.1.0.5"]);
  // host-local's, which has no network of its own to name.
  releaseInvalid(made.options, isValid);
  expect(Object.keys(made.files())).toEqual(["10.1.0.3", "10.1.0.5"]);
});

function shared(): LeaseDirectory {
  const made = leaseDirectory();
  mkdirSync(made.path);
  for (const [last, network] of [[2, "net"], [3, "other"]]) {
    writeFileSync(join(made.path, `10.1.0.${last}`), `c1\r\neth0\r\n${network}`);
  }
  return made;
}

test("DEL releases what the attachment has in its network", () => {
  using made = shared();
  const release = (inNetwork?: string) =>
    releaseAddresses(made.options, { containerId: "c1", ifName: "eth0", inNetwork }, []);
  expect([release(), release("third"), release("net"), release("net")]).toEqual([0, 0, 1, 0]);
  expect(Object.keys(made.files())).toEqual(["10.1.0.3"]);
});

test("the directory goes with the last network that has leases in it", () => {
  using made = shared();
  const all = { isDryRun: false, mayRelease: () => true }, dry = { ...all, isDryRun: true };
  const lease = { what: "lease 10.1.0.2 of container c1", lease: { containerId: "c1" } };
  const directory = { what: `directory ${made.path}`, staysBecause: undefined };
  for (const how of [dry, all]) expect(removeLeaseDirectory(made.options, how, "net")).toEqual([lease]);
  expect(removeLeaseDirectory(made.options, dry, "net")).toEqual([]);
  writeFileSync(join(made.path, "10.1.0.9"), "printer in room 5");
  expect(removeLeaseDirectory(made.options, all, "other")).toHaveLength(1);
  expect(Object.keys(made.files())).toEqual(["10.1.0.9"]);
  expect(removeLeaseDirectory(made.options, all, "other")).toEqual([]);
  Bun.spawnSync(["rm", join(made.path, "10.1.0.9")]);
  expect(removeLeaseDirectory(made.options, all, "other")).toEqual([directory]);
});
