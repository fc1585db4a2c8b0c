/**
 * `npm run docs`: the pages as a site in dist/site, by VitePress. docs/site/ says how, and has a lockfile of its own:
 * nobody but who builds the site needs its packages.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Refused } from "./arguments.mjs";
import { installLocked, say } from "./setup.mjs";
import { defineTool, root, runTool } from "./tool.ts";

const FOLDER = "docs/site", OUT = "dist/site";

export const tool = defineTool({
  name: "docs",
  about: `Builds the pages as a site, into ${OUT}.`,
  options: {
    base: { type: "string", value: "/PATH/", about: "where the site stands on its server; / without it" },
  },
  needs: "packages",
  begin({ values: { base = "/" } }) {
    if (!/^\/(\S*\/)?$/.test(base)) throw new Refused(`--base ${base} does not begin and end with /`);
    return async () => {
      // The scripts of these packages only make the first start faster.
      await installLocked(FOLDER, "--ignore-scripts");
      rmSync(join(root, OUT), { recursive: true, force: true });
      const command = ["node", "node_modules/vitepress/bin/vitepress.js", "build", ".", "--base", base];
      const build = Bun.spawnSync(command, {
        cwd: join(root, FOLDER),
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      if (build.exitCode !== 0) {
        console.error(`${build.stdout}${build.stderr}`.trim());
        // A part of the site would be taken for all of it.
        if (existsSync(join(root, OUT))) rmSync(join(root, OUT), { recursive: true });
        return build.exitCode;
      }
      say(`built ${OUT}`);
      return 0;
    };
  },
});

if (import.meta.main) process.exitCode = await runTool(tool);
