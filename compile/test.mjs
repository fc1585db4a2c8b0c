/**
 * `npm test`: sets the machine up, runs `bun test`, and ends with the line `N passed, N failed, N skipped`.
 * Arguments are path filters and flags of `bun test`: `npm test -- test/ipam`.
 */
import { spawn } from "node:child_process";
import { bun, orSay, root, say, setUp } from "./setup.mjs";

process.exitCode = await orSay(async () => {
  await setUp();
  const started = Date.now();
  say("running the tests");
  const { code, output } = await runTests(process.argv.slice(2));
  say(`took ${Math.round((Date.now() - started) / 1000)} s`);
  // The totals stand at the end of the output, one a line: " 12 pass", " 0 fail", " 1 skip".
  const total = (word) => Number(output.match(new RegExp(`^\\s*(\\d+) ${word}$`, "m"))?.[1] ?? 0);
  const failed = total("fail") + (code !== 0 && total("fail") === 0 ? 1 : 0);
  console.log(`${total("pass")} passed, ${failed} failed, ${total("skip") + total("todo")} skipped`);
  return code === 0 && failed === 0 ? 0 : 1;
});

function runTests(args) {
  return new Promise((done) => {
    const environment = { ...process.env, FORCE_COLOR: "0" };
    const child = spawn(bun, ["test", ...args], { cwd: root, env: environment, stdio: ["ignore", "pipe", "pipe"] });
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
