/** Two builds beside each other: each resident serves the calls of its own build alone, and all calls succeed. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { leftSince, quietMoment } from "../../support/leftovers.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY, patchbayPlugins } from "../../support/plugins.ts";
import { startResident } from "../../support/resident.ts";
import { untilTrue } from "../../support/until-true.ts";
import { buildOffset } from "../../support/talking.ts";

// Each machine has a resident of its own.
delete process.env.PATCHBAY_TEST_RESIDENT;

let directory: string;
/** The same program that takes itself for another build. */
let other: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "patchbay-builds-"));
  other = join(directory, "patchbay");
  copyFileSync(PATCHBAY, other);
  const file = openSync(other, "r+");
  writeSync(file, Buffer.alloc(20, 7), 0, 20, buildOffset(readFileSync(PATCHBAY)));
  closeSync(file);
  for (const name of ["bridge", "host-local"]) symlinkSync(other, join(directory, name));
});
afterAll(() => rmSync(directory, { recursive: true }));

async function isServed(machine: Machine, program: string): Promise<boolean> {
  const { stderr, code } = await machine.run(["strace", "-e", "trace=openat", program, "version"]);
  expect(code).toBe(0);
  return !stderr.includes("ld-linux");
}

test("calls of another build run by themselves, whichever build the resident is of", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const conf = { type: "bridge", isGateway: true, ipam: { type: "host-local", subnet: "10.1.0.0/24" } };
  const nets = [network(machine, conf), network(machine, conf, directory)];
  await nets[0]!.add(container);
  await nets[0]!.del(container);
  const moment = await quietMoment(machine);
  for (const [resident, stranger] of [[PATCHBAY, other], [other, PATCHBAY]] as const) {
    const serving = await startResident(machine, 1, resident);
    await untilTrue(() => isServed(machine, resident), Boolean);
    expect(await isServed(machine, stranger)).toBe(false);
    for (const [adding, deleting] of [[0, 1], [1, 0]] as const) {
      await nets[adding]!.add(container);
      await nets[deleting]!.del(container);
      expect(await leftSince(moment, machine)).toEqual([]);
    }
    serving.kill("SIGKILL");
    await serving.exited;
  }
  expect(patchbayPlugins()).not.toBe(directory);
});
