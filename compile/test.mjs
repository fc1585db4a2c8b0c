/**
 * `npm test`: sets the machine up, runs `bun test`, runs on another kernel what this one lacks the features for
 * (test/vm/vm.ts), and ends with the line `N passed, N failed, N skipped`.
 *
 * Arguments are path filters and flags of `bun test`, and leave the other kernel out: `npm test -- test/ipam`.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bun, orSay, root, say, setUp } from "./setup.mjs";

process.exitCode = await orSay(async () => {
  await setUp();
  const started = Date.now();
  const args = process.argv.slice(2);
  const directory = mkdtempSync(join(tmpdir(), "patchbay-test-"));
  const report = join(directory, "report.xml");
  try {
    let totals = await runTests(args, report);
    if (args.length === 0 && totals.skipped > 0) {
      say(`${totals.skipped} tests need what this kernel lacks; they run on Debian's, in a virtual machine`);
      const there = await runOnOtherKernel(report);
      totals = {
        passed: totals.passed + there.passed,
        failed: totals.failed + there.failed,
        skipped: there.skipped,
      };
    }
    if (totals.failed > 0 && existsSync(report)) await follow(["compile/failures.ts", report]);
    say(`took ${Math.round((Date.now() - started) / 1000)} s`);
    console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
    return totals.failed === 0 ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

async function runTests(args, report) {
  say("running the tests");
  // No test asserts a time, and a machine may be slow: the limit only ends what hangs.
  const flags = ["--timeout=300000", "--reporter=junit", `--reporter-outfile=${report}`];
  const { code, output } = await follow(["test", ...flags, ...args]);
  // The totals stand at the end of the output, one a line: " 12 pass", " 0 fail", " 1 skip".
  const total = (word) => Number(output.match(new RegExp(`^\\s*(\\d+) ${word}$`, "m"))?.[1] ?? 0);
  const failed = total("fail");
  return {
    passed: total("pass"),
    failed: code !== 0 && failed === 0 ? 1 : failed,
    skipped: total("skip") + total("todo"),
  };
}

async function runOnOtherKernel(report) {
  const { code, output } = await follow(["test/vm/vm.ts", `--skipped=${report}`]);
  const last = [...output.matchAll(/^(\d+) passed, (\d+) failed, (\d+) skipped$/gm)].at(-1);
  if (last === undefined) return { passed: 0, failed: 1, skipped: 0 };
  const [passed, failed, skipped] = last.slice(1).map(Number);
  return { passed, failed: code !== 0 && failed === 0 ? 1 : failed, skipped };
}

/** Runs Bun with its output passed on; answers the end of it, as long runs say much. */
function follow(args) {
  return new Promise((done) => {
    const environment = { ...process.env, FORCE_COLOR: "0" };
    const child = spawn(bun, args, { cwd: root, env: environment, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8");
      stream.on("data", (chunk) => {
        process.stdout.write(chunk);
        output = (output + chunk).slice(-20_000);
      });
    }
    child.on("close", (code, signal) => done({ code: code ?? `signal ${signal}`, output }));
  });
}
