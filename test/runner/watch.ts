/**
 * `npm run test:watch [-- PATH…]`: runs the unit tests again whenever a file changes that they load, until it is
 * interrupted. With PATHs, only those whose path contains one of them.
 */
import { matching, root, unitTests } from "./test-files.ts";

const files = matching(unitTests(), process.argv.slice(2)).map((file) => `./${file}`);
if (files.length === 0) {
  console.error("no unit test has that in its path; test/README.md says what a unit test is");
  process.exit(1);
}
const child = Bun.spawn([process.execPath, "test", "--watch", "--timeout=300000", ...files], {
  cwd: root,
  stdio: ["inherit", "inherit", "inherit"],
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
process.exitCode = await child.exited;
