/**
 * `npm run test:watch [-- PATH…]`: runs the unit tests again whenever a file changes that they load, until it is
 * interrupted. With PATHs, only those whose path contains one of them.
 */
import { Refused } from "../../compile/arguments.mjs";
import { defineTool, runTool } from "../../compile/tool.ts";
import { matching, root, unitTests } from "./test-files.ts";

export const tool = defineTool({
  name: "test:watch",
  about: "Runs unit tests again whenever a file changes that they load. With PATHs, those that have one in theirs.",
  words: "[PATH…]",
  needs: "packages",
  begin({ positionals }) {
    const files = matching(unitTests(), positionals).map((file) => `./${file}`);
    if (files.length === 0) {
      throw new Refused(`no unit test has ${positionals.join(" or ")} in its path; test/README.md says what one is`);
    }
    return async () => {
      const child = Bun.spawn([process.execPath, "test", "--watch", "--timeout=300000", ...files], {
        cwd: root,
        stdio: ["inherit", "inherit", "inherit"],
      });
      for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
      return await child.exited;
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
