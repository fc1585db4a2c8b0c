/**
 * `bun compile/failures.ts REPORT`: says again what failed in a run of the tests and why, from its JUnit report. The
 * run itself said so where it happened, thousands of lines before.
 */
import { readFileSync } from "node:fs";
import { readJUnit } from "../test/vm/junit.ts";

for (const { file, name, outcome, failure } of readJUnit(readFileSync(process.argv[2]!, "utf8"))) {
  if (outcome === "failed") {
    console.log(`FAILED ${file}: ${name}\n${(failure ?? "").trim().replace(/^/gm, "    ")}\n`);
  }
}
