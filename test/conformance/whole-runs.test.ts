/** Runs of the command: plugins that hang or take things away, unknown ones, and what is left on the host. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demands } from "../../src/conformance/demands/table.ts";
import { failuresOf, pluginDirectory, reportOn } from "../support/conformance.ts";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { openMachine } from "../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { untilTrue } from "../support/until-true.ts";

const loopback = "exec $real/loopback";
/** Seconds that nobody else sleeps. */
const LONG = `86400.${process.pid}`;

test("a plugin that hangs is killed with what it has started, and after three times not called any more", async () => {
  using plugins = pluginDirectory({
    "hangs-loopback": `[ "$CNI_COMMAND" = DEL ] || exec $real/loopback; sleep ${LONG} & sleep ${LONG}`,
  });
  const { code, report: { plugins: [found] } } = await reportOn(plugins.path, "--timeout", "10");
  expect(code).toBe(1);
  const failures = failuresOf(found!);
  expect(failures).toHaveLength(3);
  for (const failure of failures) expect(failure).toMatch(/: DEL had not ended after 10 s, and was killed$/);
  const skipped = found!.demands.filter((one) =>
    "reason" in one && /3 calls had not ended in time/.test(one.reason!)
  );
  expect(skipped.map(({ name }) => name)).toContain("del-twice");
  expect(processesWith(LONG)).toEqual([]);
});

test("a plugin that hangs is killed in whatever group of processes it is", async () => {
  using plugins = pluginDirectory({
    "moving-loopback": `exec python3 -c '
import os, time
for keeps in (True, False):
  child = os.fork()
  if child == 0:
    if not keeps: os.setpgid(0, 0)
    time.sleep(${LONG})
time.sleep(0.3)
os.setpgid(0, child)
time.sleep(${LONG})'`,
  });
  const { code, report: { plugins: [found] } } = await reportOn(plugins.path, "--timeout", "2");
  expect(code).toBe(1);
  expect(failuresOf(found!)).toContainEqual(expect.stringMatching(/had not ended after 2 s, and was killed$/));
  expect(found!.unknown).toBe(0);
  expect(processesWith(LONG)).toEqual([]);
});

test(
  "what a plugin takes away from the run is a failure of that demand only, and the report is written",
  async () => {
    using plugins = pluginDirectory({
      "deep-static":
        `case $CNI_COMMAND in VERSION|ADD) ;; *) exec $real/static ;; esac; printf '{"supportedVersions":'
      for bracket in [ ]; do head -c 400000 /dev/zero | tr '\\0' $bracket; done; printf }`,
      "empty-bridge": `[ "$CNI_COMMAND" = ADD ] || exec $real/bridge; echo '{"cniVersion":"1.1.0"}'`,
      "taking-loopback": `$real/loopback || exit; [ "$CNI_COMMAND" != ADD ] || umount -l /run /tmp /proc`,
      "loopback": loopback,
    });
    const file = join(plugins.path, "result.xml");
    const { code, report } = await reportOn(plugins.path, "--junit", file);
    expect(code).toBe(3);
    const [deep, empty, whole, taking] = report.plugins;
    expect(report.plugins.map(({ plugin }) => plugin)).toEqual([
      "deep-static",
      "empty-bridge",
      "loopback",
      "taking-loopback",
    ]);
    expect(failuresOf(deep!)[0]).toMatch(
      /^version-lists-supported: the document on stdout nests deeper than 100: VERSION/,
    );
    expect(failuresOf(deep!)).toContainEqual(expect.stringMatching(/^add-succeeds: .* nests deeper than 100: ADD/));
    expect(failuresOf(empty!)).toContain(
      "check-address-gone: ADD succeeded, and the container has no interface eth0",
    );
    expect(failuresOf(empty!)).toContain(
      "check-interface-gone: ADD succeeded, and the container has no interface eth0",
    );
    expect([deep!.unknown, empty!.unknown, whole!.unknown, whole!.failed]).toEqual([0, 0, 0, 0]);
    const unknown = taking!.demands.filter(({ outcome }) => outcome === "unknown");
    expect(unknown.map(({ name }) => name)).toContain("del-gone-netns");
    for (const one of unknown) expect(one).toMatchObject({ reason: expect.stringMatching(/^asking it failed: /) });
    expect(report.unknown).toBe(unknown.length);
    expect(readFileSync(file, "utf8").match(/<error /g)).toHaveLength(unknown.length);
  },
  300_000,
);

test("of an unknown plugin only what needs no configuration is asked, with --conf the rest", async () => {
  const scripts = { lonely: "exec $real/loopback", fixed: "exec $real/static", label: "exec $real/tuning" };
  using plugins = pluginDirectory(scripts);
  const { report: without } = await reportOn(plugins.path);
  for (const { plugin, kind, demands: asked } of without.plugins) {
    expect(kind, plugin).toBeUndefined();
    const skipped = asked.filter(({ outcome }) => outcome === "skipped");
    expect(new Set(skipped.map((one) => (one as { reason?: string }).reason))).toEqual(
      new Set(["nothing is known of the plugin: --conf names a configuration for it"]),
    );
    expect(asked.length - skipped.length).toBe(demands.filter(({ kinds }) => kinds === undefined).length);
  }

  const conf = join(plugins.path, "fixed.conf");
  const ipam = { type: "static", addresses: [{ address: "10.1.2.3/24" }] };
  writeFileSync(conf, JSON.stringify({ cniVersion: "0.4.0", name: "mine", type: "fixed", ipam }));
  const { code, report } = await reportOn(plugins.path, "fixed", `--conf=${conf}`, "--kind=ipam");
  expect(report.plugins.map(failuresOf)).toEqual([[]]);
  expect(report.plugins[0]).toMatchObject({ plugin: "fixed", kind: "ipam", version: "1.1.0" });
  expect(report.plugins[0]!.passed).toBeGreaterThan(30);
  expect(code).toBe(0);
});

test("the host is as it was, and so it is when the run is killed half-way", async () => {
  await using machine = await openMachine();
  await machine.sh("touch /run/before /var/lib/before");
  const before = await filesOf(machine), moment = await quietMoment(machine);
  expect((await machine.run([PATCHBAY, "conformance", patchbayPlugins(), "bridge", "portmap"])).code).toBe(0);
  expect(await leftSince(moment, machine)).toEqual([]);
  expect(await filesOf(machine)).toEqual(before);

  // setsid: so what it has started is not in the plugin's group.
  using plugins = pluginDirectory({
    "hangs-bridge": `$real/bridge; [ "$CNI_COMMAND" != ADD ] || { setsid sleep ${LONG} & sleep ${LONG}; }`,
  });
  for (const which of ["outer", "inner"] as const) {
    const run = machine.start([PATCHBAY, "conformance", plugins.path, "--timeout=3600"]);
    await untilTrue(() => processesWith(LONG).length, (count) => count > 1);
    const [inner] = processesWith(`conformance\0${plugins.path}`).filter((pid) => pid !== run.pid);
    process.kill(which === "outer" ? run.pid : inner!, "SIGKILL");
    await run.exited;
    if (which === "inner") expect(await run.stderr.text()).toMatch(/ran the plugins was ended by signal 9/);
    await untilTrue(() => [...processesWith(LONG), ...processesWith(plugins.path)], (left) => left.length === 0);
    expect(await leftSince(moment, machine)).toEqual([]);
    expect(await filesOf(machine)).toEqual(before);
  }
});

async function filesOf(machine: Awaited<ReturnType<typeof openMachine>>): Promise<string> {
  return await machine.sh("find /run /var/lib -xdev; cat /proc/self/mounts | sort");
}

/** Processes with the text in their command lines. */
function processesWith(text: string): number[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name)).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(text);
    } catch {
      return false; // It has ended.
    }
  }).map(Number);
}
