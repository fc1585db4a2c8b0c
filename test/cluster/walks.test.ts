/** Whatever happens to machines, disks, connections and the store, no address is in use twice: random walks (model.ts). */
import { expect, test } from "bun:test";
import { random } from "../support/random.ts";
import { isShared, isShortRun } from "../support/share.ts";
import { type Scenario, World } from "./model.ts";

const WALKS = isShared && !isShortRun ? 170_000 : 1_000, STEPS = 240;

const scenarios: [string, Scenario][] = [
  ["power, connections and disks fail, and dead machines are removed", {}],
  ["records are deleted by hand", { deletes: true }],
  ["the store is restored, with an alarm", { restores: "with an alarm" }],
  ["the store is restored, and nobody says so", { restores: "unsaid" }],
  ["a copied disk in another machine", { clones: "other" }],
  ["a copied disk in a machine with the same fingerprint", { clones: "same" }],
];

test.each(scenarios)("%s: no address is in use twice", (_, scenario) => {
  let uses = 0;
  for (let walk = 0; walk < WALKS; walk++) {
    const world = new World(random, scenario), twice = world.walk(STEPS);
    if (twice !== undefined) throw new Error(`${twice} is in use twice\n${world.log.join("\n")}`);
    uses += world.uses;
  }
  // A world in which nothing happens would show nothing.
  expect(uses).toBeGreaterThan(WALKS);
}, 3_000_000);
