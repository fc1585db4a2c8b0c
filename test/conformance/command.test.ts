/** What the command refuses before it runs a plugin. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pluginDirectory, runConformance } from "../support/conformance.ts";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const loopback = "exec $real/loopback";

test("wrong arguments are refused with exit status 2", async () => {
  using plugins = pluginDirectory({ loopback });
  const conf = join(plugins.path, "conf");
  const refuse = async (text: string, said: RegExp, ...more: string[]) => {
    writeFileSync(conf, text);
    const { code, stderr } = await runConformance(plugins.path, ...more);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(said) });
  };
  await refuse("", /has no plugin lopback; it has loopback/, "lopback");
  await refuse("", /--timeout 0: seconds from above 0/, "--timeout", "0");
  await refuse("", /--timeout soon: seconds/, "--timeout=soon");
  await refuse("", /--conf .*nowhere: no such file/, `--conf=${conf}/../nowhere`);
  await refuse("{}", /"type" is missing/, `--conf=${conf}`);
  await refuse('{"plugins":[]}', /"plugins" has 0 entries/, `--conf=${conf}`);
  await refuse('{"type":"calico"}', /--conf has the type calico, and .* no such plugin/, `--conf=${conf}`);
  await refuse('{"type":"loopback"}', /--kind mane: one of main, ipam, meta/, `--conf=${conf}`, "--kind=mane");
  await refuse("", /--kind says what plugins of --conf are/, "--kind=ipam");
  using empty = pluginDirectory({});
  expect(await runConformance(empty.path)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/no executables/),
  });
  expect(await runConformance("/nowhere")).toMatchObject({ code: 2, stderr: expect.stringMatching(/no such file/) });
  expect(await runConformance(conf)).toMatchObject({ code: 2, stderr: expect.stringMatching(/not a directory/) });
  for (const file of [conf, join(plugins.path, "loopback")]) {
    await refuse(
      '{"type":"loopback"}',
      /, which the run needs: name another file/,
      `--conf=${conf}`,
      `--junit=${file}`,
    );
  }
  await refuse("[", /conf: JSON Parse error/, `--conf=${conf}`);
});

test("without root it says so", async () => {
  await using machine = await openMachine();
  const { code, stderr } = await machine.run([
    "setpriv",
    "--reuid=65534",
    "--clear-groups",
    PATCHBAY,
    "conformance",
    patchbayPlugins(),
  ]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/this needs root/) });
});

test("in a user namespace that does not own the others it says so before it begins", async () => {
  await using machine = await openMachine();
  for (const [options, kind] of [["-Ur", "pid"], ["-Urpf", "net"], ["-Urpnf", "mnt"]] as const) {
    const ended = await machine.run(["unshare", options, PATCHBAY, "conformance", patchbayPlugins(), "loopback"]);
    expect(ended).toMatchObject({
      code: 3,
      stdout: "",
      stderr: expect.stringContaining(`does not own its ${kind} namespace: run it outside, as root, or by`),
    });
  }
});
