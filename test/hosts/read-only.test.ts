/**
 * A host whose file system is read-only but for /run and /var, as image-based distributions have it: the program does all
 * that it does elsewhere. Where one of these two is read-only, the error names what must be writable.
 */
import { expect, test } from "bun:test";
import { leftSince, quietMoment } from "../support/leftovers.ts";
import { type Machine, openMachine } from "../support/machine.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { startResident } from "../support/resident.ts";
import { bridge, chainComesAndGoes, chainOf, ipam } from "./story.ts";

/** /run and /var/lib are the machine's own; this checkout may be in /tmp. */
async function makeReadOnly(machine: Machine): Promise<void> {
  await machine.sh("mount --bind /tmp /tmp; mount -o remount,ro,bind /");
  await machine.sh("for path in / /usr /opt /etc; do test ! -w $path; done");
}

test.each([false, true])("ADD, CHECK, GC and DEL of a chain; through a resident: %p", async (isServed) => {
  await using machine = await openMachine();
  const env = { NETCONFPATH: "/run/networks" };
  await machine.sh("mkdir /run/networks; cat >/run/networks/n.conflist", { stdin: chainOf("nftables") });
  await makeReadOnly(machine);
  const resident = isServed ? await startResident(machine) : undefined;
  try {
    await chainComesAndGoes(machine, async (...words) => {
      const outcome = await machine.run([PATCHBAY, ...words], { env });
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      return outcome.stdout;
    });
  } finally {
    resident?.kill("SIGKILL");
    await resident?.exited;
  }
});

test("install into such a file system fails with the directory and the reason, and puts the program into a writable one", async () => {
  await using machine = await openMachine();
  await makeReadOnly(machine);
  for (const directory of ["/opt/cni-of-tests/bin", "/usr/lib"]) {
    const { code, stdout, stderr } = await machine.run([PATCHBAY, "install", directory]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toStartWith("patchbay install: ");
    expect(stderr).toContain(directory.slice(0, 8));
    expect(stderr).toContain("read-only file system");
    expect(stderr).toEndWith("mount it writable, install the same build, or name another directory\n");
  }
  const directory = "/var/lib/cni/bin";
  const installed = await machine.run([PATCHBAY, "install", "--no-resident", directory]);
  expect(installed).toMatchObject({ code: 0, stderr: "" });
  const container = await machine.container(), conf = { cniVersion: "1.1.0", name: "n", ...bridge("nftables") };
  for (const command of ["ADD", "DEL"]) {
    expect((await cni(machine, directory, { plugin: "bridge", command, conf, container })).code).toBe(0);
  }
});

test.each([
  [
    "/run",
    'cannot use state directory "/run/patchbay/n": ',
    "mount --rbind /run /run; mount -o remount,ro,bind /run",
  ],
  ["/var/lib", "mkdir /var/lib/cni", "mount -t tmpfs -o ro none /var/lib"],
])("%s is read-only, too: ADD says what must be writable, and makes nothing", async (_path, reason, script) => {
  await using machine = await openMachine();
  const container = await machine.container(), before = await quietMoment(machine);
  await machine.sh(script);
  const call = { plugin: "bridge", conf: { cniVersion: "1.1.0", name: "n", ...bridge("nftables") }, container };
  const { code, json } = await cni(machine, patchbayPlugins(), { ...call, command: "ADD" });
  expect([code, json.code, json.msg]).toEqual([1, 5, expect.stringContaining(reason)]);
  expect(json.msg).toEndWith(": read-only file system");
  expect(json.details).toBe(
    "/run and /var/lib/cni must be writable; PATCHBAY_STATE_DIR and host-local's dataDir name other places",
  );
  expect((await leftSince(before, machine)).filter((line) => !/ledger|\/run\/patchbay/.test(line))).toEqual([]);
  // Other places do.
  const elsewhere = await machine.sh("mktemp -d"),
    other = { ...bridge("nftables"), ipam: { ...ipam, dataDir: elsewhere.trim() } };
  const conf = { cniVersion: "1.1.0", name: "n", ...other },
    env = { PATCHBAY_STATE_DIR: `${elsewhere.trim()}/state` };
  for (const command of ["ADD", "DEL"]) {
    expect((await cni(machine, patchbayPlugins(), { ...call, conf, env, command })).code).toBe(0);
  }
  await machine.sh(`rm -r ${elsewhere}`);
});
