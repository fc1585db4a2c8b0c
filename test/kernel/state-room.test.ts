/** `status`, `plan` and `networks` fail when ADD could write no ledger, lease or result, with its reason; they change nothing. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { type Machine, openMachine } from "../support/machine.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

let machine: Machine, directory: string;
const portmap = { type: "portmap", capabilities: { portMappings: true } };
const ipam = { type: "host-local", subnet: "10.9.0.0/24", routes: [{ dst: "0.0.0.0/0" }] };
const bridge = { type: "bridge", bridge: "br0", ipam };
beforeAll(async () => {
  machine = await openMachine();
  directory = mkdtempSync(`${tmpdir()}/room-`);
  writeFileSync(
    `${directory}/n.conflist`,
    JSON.stringify({ cniVersion: "1.1.0", name: "n", plugins: [bridge, portmap] }),
  );
  await machine.container("web");
});
afterAll(async () => {
  rmSync(directory, { recursive: true });
  await machine[Symbol.asyncDispose]();
});

const S = "/run/state";
const statusOf = (plugin: { type: string }) => {
  const conf = { cniVersion: "1.1.0", name: "n", ...plugin }, env = { PATCHBAY_STATE_DIR: S };
  return cni(machine, patchbayPlugins(), { plugin: plugin.type, command: "STATUS", conf, env });
};
/** What is done to the directory, which is not there before. */
const ways: [what: string, prepare: string, reason: string][] = [
  [
    "is full",
    `mkdir -m 700 ${S}; mount -t tmpfs -o size=4k,mode=700 none ${S}; echo >${S}/x`,
    "no space left on device",
  ],
  [
    "has no inode left",
    `mkdir -m 700 ${S}; mount -t tmpfs -o nr_inodes=1,mode=700 none ${S}`,
    "no space left on device",
  ],
  ["is read-only", `mkdir -m 700 ${S}; mount -t tmpfs -o ro,mode=700 none ${S}`, "read-only file system"],
  ["is a file", `echo >${S}`, "put a directory in its place"],
  ["belongs to another user", `mkdir -m 700 ${S}; chown 1001 ${S}`, `chown 0 ${S}`],
];
const undo = `umount ${S} 2>/dev/null || true; rm -rf ${S}`;

test.each(ways)("a state directory that %s", async (_, prepare, reason) => {
  await machine.sh(`${undo}; ${prepare}`);
  const env = { NETCONFPATH: directory, PATCHBAY_STATE_DIR: S };
  const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env });
  const { code, stderr } = await patchbay("status", "n");
  expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot use state directory "${S}": `)]);
  expect(stderr).toContain(reason);
  const planned = await patchbay("plan", "n", "web");
  expect(planned.code).toBe(1);
  expect(planned.stderr.match(/'add' would fail: .*/g)).toEqual([expect.stringContaining(reason)]);
  expect((await statusOf(bridge)).json).toMatchObject({ code: 50 });
  expect(await patchbay("add", "n", "web")).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
  await machine.sh(undo);
});

const LEASES = "/var/lib/cni/networks", RESULTS = "/var/lib/cni/results";
const full = (path: string) => `mount -t tmpfs -o size=4k,mode=700 none ${path}; echo >${path}/.x`;
test.each([
  [
    "leases, full",
    LEASES,
    full(LEASES),
    `/n; write ${LEASES}: no space left`,
    "no space left on device\n  make room: ",
  ],
  ["leases, read-only", LEASES, `mount -t tmpfs -o ro none ${LEASES}`, "read-only file system", "must be writable"],
  [
    "results, full",
    RESULTS,
    full(RESULTS),
    `; write ${RESULTS}: no space left`,
    "no space left on device\n  make room: ",
  ],
  ["results, untrusted", RESULTS, `chmod 777 ${RESULTS}`, `${RESULTS} is not trusted`, "chmod o-w"],
])("a store of %s", async (_, path, prepare, reason, step) => {
  await machine.sh(`mkdir -p -m 700 ${path}; ${prepare}`);
  const env = { NETCONFPATH: directory };
  const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env });
  for (const words of [["status", "n"], ["status"], ["plan", "n", "web"], ["networks"]]) {
    const { code, stdout, stderr } = await patchbay(...words), said = stdout + stderr;
    expect([words, code, said.split(reason).length - 1, said.includes(step)]).toEqual([words, 1, 1, true]);
  }
  const { code, stderr } = await patchbay("add", "n", "web");
  expect([code, stderr]).toEqual([1, expect.stringContaining(step)]);
  expect(stderr.match(/not trusted/g)?.length ?? 1).toBe(1);
  await machine.sh(`umount ${path} || true; rm -rf ${path}`);
});

test("results may be a mount of their own", async () => {
  await machine.sh(`mkdir -p ${RESULTS}; mount -t tmpfs -o mode=700 none ${RESULTS}`);
  const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: directory } });
  expect(await patchbay("status", "n")).toMatchObject({ code: 0 });
  expect(await patchbay("add", "n", "web")).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh(`ls -A ${RESULTS}`)).toMatch(/^n-cnitool-\w+-eth0\n$/);
  expect(await patchbay("del", "n", "web")).toMatchObject({ code: 0 });
  expect(await machine.sh(`ls -A ${RESULTS}; umount ${RESULTS}`)).toBe("");
});

test("one that is not there yet is not made, and another below it neither", async () => {
  const env = { NETCONFPATH: directory, PATCHBAY_STATE_DIR: "/run/one/two" };
  for (const words of [["status", "n"], ["plan", "n", "web"]]) {
    expect(await machine.run([PATCHBAY, ...words], { env })).toMatchObject({ code: 0, stderr: "" });
  }
  expect(await machine.sh("ls /run")).not.toContain("one");
  await machine.sh("mkdir /run/one; mount -t tmpfs -o ro none /run/one");
  expect(await machine.run([PATCHBAY, "status", "n"], { env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(
      'cannot use state directory "/run/one/two": open /run/one: read-only file system; /run and /var/lib/cni must be writable',
    ),
  });
});

test("a relative one is refused by every verb, DEL included, and nothing is made", async () => {
  const env = { NETCONFPATH: directory, PATCHBAY_STATE_DIR: "state" };
  for (
    const words of [["status", "n"], ["plan", "n", "web"], ["add", "n", "web"], ["del", "n", "web"], ["inspect"]]
  ) {
    expect(await machine.run([PATCHBAY, ...words], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(
        'PATCHBAY_STATE_DIR is "state", and must be an absolute path; a relative one is',
      ),
    });
  }
  expect(await machine.sh("ip -n web -br link")).not.toContain("eth0");
});

test("host-local keeps no ledger, and its leases elsewhere", async () => {
  await machine.sh(`${undo}; echo >${S}`);
  const { code, stdout } = await statusOf({ ...bridge, type: "host-local" });
  expect([code, stdout]).toEqual([0, ""]);
  await machine.sh(undo);
});
