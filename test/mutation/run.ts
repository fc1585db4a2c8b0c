/**
 * `npm run test:faults-seeded`: shows that the tests notice faults. Puts each fault of faults.txt into a copy of this
 * checkout, one at a time, builds it, and runs the tests listed for it. One of them must fail, and must pass on the
 * unchanged code. Ends with the line `N passed, N failed`.
 *
 * With arguments, only faults whose file has one of them in its path: `npm run test:faults-seeded -- src/ipam`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Refused } from "../../compile/arguments.mjs";
import { defineTool, runTool } from "../../compile/tool.ts";
import { type Fault, faults } from "./faults.ts";
import { BUILD, type Copy, describe, inCopy, type Noticed, spoiled, tryChange } from "./trial.ts";

async function seed(copy: Copy, { file, find, replace, ...tests }: Fault): Promise<Noticed | string> {
  const times = readFileSync(join(copy.directory, file), "utf8").split(find).length - 1;
  if (times !== 1) return `stale: its text stands in the file ${times} times`;
  const end = await tryChange(copy, file, (text) => text.split(find).join(replace), tests);
  return typeof end !== "string" && end.file === BUILD ? "stale: with it, the program is not built" : end;
}

async function seedAll(chosen: readonly Fault[]): Promise<number> {
  let failed = 0;
  const noticed: Noticed[] = [];
  await inCopy(async (copy) => {
    for (const fault of chosen) {
      const since = performance.now();
      const end = await seed(copy, fault);
      const seconds = `${Math.round((performance.now() - since) / 1000)} s`.padStart(5);
      console.log(`${seconds}  ${fault.file}: ${fault.find} → ${fault.replace || "nothing"}`);
      if (typeof end === "string") failed++;
      else noticed.push(end);
      console.log(typeof end === "string" ? `FAILED ${end}` : `       noticed by ${describe(end)}`);
    }
    for (const one of await spoiled(copy, noticed)) {
      failed++;
      console.log(`FAILED without any fault: ${describe(one)}`);
    }
  });
  console.log(`${chosen.length - failed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

export const tool = defineTool({
  name: "test:faults-seeded",
  about: "Shows that the tests notice faults: puts them into a copy of this checkout, one at a time. With PATHs, " +
    "only\nthe faults of files that have one in theirs, such as src/ipam.",
  words: "[PATH…]",
  needs: "all",
  begin({ positionals }) {
    const isChosen = ({ file }: Fault) => positionals.some((part) => file.includes(part));
    const chosen = positionals.length === 0 ? faults : faults.filter(isChosen);
    if (chosen.length === 0) throw new Refused(`no seeded fault has ${positionals.join(" or ")} in its file's path`);
    return () => seedAll(chosen);
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
