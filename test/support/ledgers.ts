/** Ledgers of one attachment, without an engine, in a state directory of each test's own. */
import { afterEach, beforeEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readLedger } from "../../src/engine/ledger/ledger.ts";

export function stateDirectoryForEachTest(): { readonly path: string } {
  let path: string;
  beforeEach(() => void (process.env.PATCHBAY_STATE_DIR = path = mkdtempSync(join(tmpdir(), "ledger-"))));
  afterEach(() => {
    delete process.env.PATCHBAY_STATE_DIR;
    rmSync(path, { recursive: true });
  });
  return {
    get path() {
      return path;
    },
  };
}

export const owner = { network: "net", containerId: "ctr", ifName: "eth0" };
export const header = { ...owner, plugin: "bridge", netnsPath: "/run/netns/x", cniArgs: "", stdin: "{}" };
export const answer = { links: ["veth1"], addresses: ["10.0.0.5/24"] };
export const thing = (name: string) => ({ kind: { kind: "thing" }, spec: { name } });
/** The names of the things in the ledger. */
export const announced = () =>
  readLedger(owner, "bridge")?.entries.map(({ spec }) => (spec as { name: string }).name);
