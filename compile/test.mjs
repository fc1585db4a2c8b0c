/**
 * `npm test`: sets the machine up, then runs the tests (test/runner/run.ts, which says what arguments there are). Runs on
 * plain Node.js, because a fresh machine has nothing else.
 */
import { spawn } from "node:child_process";
import { bun, orSay, root, setUp } from "./setup.mjs";

process.exitCode = await orSay(async () => {
  await setUp();
  const child = spawn(bun, ["test/runner/run.ts", ...process.argv.slice(2)], { cwd: root, stdio: "inherit" });
  // The runner ends its own processes and then itself.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  return await new Promise((done) => child.on("close", (code) => done(code ?? 1)));
});
