/**
 * Records the stores of the release that package.json names, for upgrade.test.ts of every later one. As root, once for a
 * release, with the program that is released:
 *
 *     npx bun test --timeout=300000 ./test/release/record-stores.ts
 */
import { existsSync } from "node:fs";
import { expect, test } from "bun:test";
import { version } from "../../package.json";
import { openStage } from "./stage.ts";
import { folderOf, readStores, writeStores } from "./stores.ts";

test(`the stores of ${version} are recorded`, async () => {
  const folder = folderOf(version);
  if (existsSync(folder)) throw new Error(`${folder} is there: a release has one record`);
  await using stage = await openStage();
  await stage.startDhcp();
  await stage.attachAll();
  await stage.stopDhcp();
  const stores = await readStores(stage.machine);
  expect(stores.size).toBeGreaterThan(0);
  writeStores(folder, stores);
});
