/**
 * `npm test`: sets the machine up, runs `bun test`, then in a virtual machine what was skipped for want of a kernel
 * feature (test/vm), and ends with the line `N passed, N failed, N skipped`.
 * Arguments are path filters and flags of `bun test`, and leave the virtual machine out: `npm test -- test/ipam`.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { bun, orSay, root, say, setUp } from "./setup.mjs";

process.exitCode = await orSay(async () => {
  await setUp();
  const started = Date.now();
  const args = process.argv.slice(2);
  say("running the tests");
  const report = join(root, "dist/tests.xml");
  const reporting = args.length === 0 ? ["--reporter=junit", `--reporter-outfile=${report}`] : [];
  const { code, output } = await runBun(["test", ...reporting, ...args]);
  // The totals stand at the end of the output, one a line: " 12 pass", " 0 fail", " 1 skip".
  const total = (word) => Number(output.match(new RegExp(`^\\s*(\\d+) ${word}$`, "m"))?.[1] ?? 0);
  const here = {
    passed: total("pass"),
    failed: total("fail") + (code !== 0 && total("fail") === 0 ? 1 : 0),
    skipped: total("skip") + total("todo"),
  };
  const all = here.skipped > 0 && args.length === 0 ? await withVirtualMachine(here, report) : here;
  say(`took ${Math.round((Date.now() - started) / 1000)} s`);
  console.log(`${all.passed} passed, ${all.failed} failed, ${all.skipped} skipped`);
  return all.failed === 0 ? 0 : 1;
});

/** Adds what came of the tests that were skipped here, where a kernel has what they need. */
async function withVirtualMachine(here, report) {
  say(`running the ${here.skipped} skipped tests in a virtual machine`);
  const { output } = await runBun(["test/vm/vm.ts", `--skipped=${report}`]);
  const [, passed, failed, skipped] = output.match(/^(\d+) passed, (\d+) failed, (\d+) skipped\s*$/m)?.map(Number) ??
    [0, 0, 1, here.skipped];
  return { passed: here.passed + passed, failed: here.failed + failed, skipped };
}

function runBun(args) {
  return new Promise((done) => {
    const environment = { ...process.env, FORCE_COLOR: "0" };
    const child = spawn(bun, args, { cwd: root, env: environment, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (chunk) => {
        process.stdout.write(chunk);
        // Only the end matters, and a long run says much.
        output = (output + chunk).slice(-20_000);
      });
    }
    child.on("close", (code, signal) => done({ code: code ?? `signal ${signal}`, output }));
  });
}
