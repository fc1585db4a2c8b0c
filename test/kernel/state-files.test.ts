/**
 * Whatever lies in the place of a state file: every verb ends, DEL and GC clean up, ADD says what is in its way, and
 * nothing outside is read, changed or removed.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, expect, test } from "bun:test";
import { type Container, type Machine, openMachine, type Outcome } from "../support/machine.ts";
import { PATCHBAY, patchbayPlugins } from "../support/plugins.ts";
import { groupWriters, otherNames, otherWriters, spoilings } from "../support/state-spoilings.ts";
import { ownShare } from "../support/share.ts";

const NETWORKS = mkdtempSync(`${tmpdir()}/patchbay-state-files-`);
afterAll(() => rmSync(NETWORKS, { recursive: true }));
const plugins = [{ type: "flannel", delegate: { bridge: "br0" } }, { type: "tuning", mtu: 1400 }];
writeFileSync(`${NETWORKS}/net.conflist`, JSON.stringify({ cniVersion: "1.1.0", name: "net", plugins }));
/** A subnet with a single address for containers. */
const subnets = ["NETWORK=10.1.0.0/16", "SUBNET=10.1.0.1/30", "MTU=1450", "IPMASQ=true"].map((line) =>
  `FLANNEL_${line}`
);

const call = (machine: Machine, container: Container, verb: string, env: Record<string, string> = {}) => {
  const words: Record<string, string[]> = { gc: ["--valid", "ctr/eth0"], "gc --all": [], status: [] };
  const more = words[verb] ?? [container.netnsPath, "--container-id", "ctr"];
  const command = ["timeout", "-s", "KILL", "120", PATCHBAY, ...verb.split(" "), "net", ...more];
  return machine.run(command, { env: { NETCONFPATH: NETWORKS, ...env } });
};

async function openRoom() {
  const machine = await openMachine(), container = await machine.container("c1");
  await machine.sh(`mkdir -p /run/flannel; printf '%s\\n' ${subnets.join(" ")} > /run/flannel/subnet.env`);
  return { machine, container, [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose]() };
}

const vethCount = async (machine: Machine) => Number(await machine.sh("ip -br link show type veth | wc -l"));
const kindAt = async (machine: Machine, path: string) => (await machine.sh(`stat -c %F ${path} 2>&1 || true`)).trim();
const names = ({ stdout, stderr }: Outcome, path: string) => `${stdout}${stderr}`.includes(path);

interface StateFile {
  path: string;
  /** Exit status when the file is not trusted. */
  add: 0 | 1;
  check: 0 | 1;
  /** What DEL does with it. */
  del: "leaves it" | "removes it" | "makes it again";
  /** These make no difference: it may be anybody's. */
  trusted?: Record<string, string>;
}

const ledgers = ["bridge", "flannel", "tuning"].map((plugin): StateFile => (
  { path: `/run/patchbay/net/ctr@eth0@${plugin}`, add: 1, check: 0, del: "removes it" }
));
const leases = "/var/lib/cni/networks/net";
const stateFiles: StateFile[] = [
  ...ledgers,
  { path: "/run/cni/tuning/ctr_eth0.json", add: 1, check: 0, del: "leaves it" },
  { path: "/var/lib/cni/flannel/ctr", add: 1, check: 1, del: "leaves it" },
  { path: "/var/lib/cni/results/net-ctr-eth0", add: 0, check: 1, del: "removes it" },
  { path: "/var/lib/cni/.patchbay.lock", add: 0, check: 0, del: "leaves it", trusted: groupWriters },
  // Whatever has the name of an address, the address is taken.
  { path: `${leases}/10.1.0.2`, add: 1, check: 1, del: "leaves it", trusted: { ...otherWriters, ...otherNames } },
  { path: `${leases}/last_reserved_ip.0`, add: 0, check: 0, del: "leaves it", trusted: otherWriters },
  { path: `${leases}/lock`, add: 0, check: 0, del: "leaves it", trusted: { ...otherWriters, ...otherNames } },
  { path: `${leases}/.patchbay/locks`, add: 1, check: 0, del: "leaves it" },
  { path: `${leases}/.patchbay/10.1.0.0-30`, add: 0, check: 0, del: "makes it again" },
];

test.each(ownShare(stateFiles))("$path", async ({ path, add, check, del, trusted = {} }) => {
  await using room = await openRoom();
  const { machine, container } = room, isLease = path.endsWith("10.1.0.2");
  const outside = `${path.startsWith("/run/") ? "/run" : "/var/lib"}/outside`;
  const untouched = () =>
    machine.sh(`cd ${outside}; find . -printf '%p %y %U %m %s\\n' | sort; find . -type f -exec cat {} +`);
  const clean = () => machine.sh(`rm -rf ${path} ${outside}; mkdir -p ${path.replace(/[^/]+$/, "")}`);

  for (const [what, script] of Object.entries(spoilings)) {
    const isTrusted = Object.hasOwn(trusted, what);
    const spoil = () =>
      machine.sh(`P=${path} D=${outside}; mkdir -p "$D"; [ -e "$P" ] || echo '{}' >"$P"; ${script}`);

    expect((await call(machine, container, "add")).code).toBe(0);
    await spoil();
    const kind = await kindAt(machine, path), before = await untouched();
    const checked = await call(machine, container, "check"), asked = await call(machine, container, "status");
    const collected = await call(machine, container, "gc"), running = await vethCount(machine);
    const deleted = await call(machine, container, "del"), left = await vethCount(machine);
    const codes = { check: checked.code, status: asked.code, gc: collected.code, del: deleted.code };
    // The container has the only address.
    expect({ what, ...codes, running, left })
      .toEqual({ what, check: isTrusted ? 0 : check, status: 1, gc: 0, del: 0, running: 1, left: 0 });
    if (!isTrusted) {
      const isLeft = del === "leaves it" || (del === "removes it" && what === "a directory");
      const gone = expect.stringContaining("No such file");
      const now = isLeft ? kind : del === "makes it again" ? "regular file" : gone;
      expect({ what, kind: await kindAt(machine, path) }).toEqual({ what, kind: now });
      if (check === 1 && !isLease) expect(names(checked, path)).toBe(true);
      if (isLeft && !path.startsWith(leases)) expect(names(deleted, path)).toBe(true);
    }
    expect({ what, outside: await untouched() }).toEqual({ what, outside: before });

    await clean();
    await spoil();
    const prepared = await untouched(), added = await call(machine, container, "add");
    // No file can replace a directory.
    const expected = what === "a directory" && del === "removes it" ? 1 : add;
    expect({ what, code: added.code, links: await vethCount(machine) })
      .toEqual({ what, code: expected, links: 1 - expected });
    if (expected === 1 && !isLease) expect(names(added, path)).toBe(true);
    expect({ what, outside: await untouched() }).toEqual({ what, outside: prepared });
    await clean();
    expect((await call(machine, container, "del")).code).toBe(0);
    await machine.sh(`rm -rf ${leases}`);
  }
});

const otherDirectories: Record<string, string> = {
  "another's": 'chown 65534 "$P"',
  "one that everybody can write": 'chmod 1777 "$P"',
  "a link to it": 'mv "$P" "$D/moved"; ln -s "$D/moved" "$P"',
};

test.each(["/run/patchbay", "/run/patchbay/net", "/var/lib/cni/results"])("the directory %s", async (path) => {
  await using room = await openRoom();
  const { machine, container } = room;
  const outside = `${path.startsWith("/run/") ? "/run" : "/var/lib"}/outside`;
  for (const [what, script] of Object.entries(otherDirectories)) {
    expect((await call(machine, container, "add")).code).toBe(0);
    await machine.sh(`P=${path} D=${outside}; mkdir -p "$D"; ${script}`);
    const content = () => machine.sh(`cd ${path}/; find . -printf '%p %y %s\\n' | sort`), before = await content();
    const again = await call(machine, container, "add");
    expect({ what, code: again.code, named: names(again, path) }).toEqual({ what, code: 1, named: true });
    expect((await call(machine, container, "gc")).code).toBe(0);
    expect(await vethCount(machine)).toBe(1);
    const deleted = await call(machine, container, "del");
    expect({ what, code: deleted.code, named: names(deleted, path) }).toEqual({ what, code: 0, named: true });
    expect(await vethCount(machine)).toBe(0);
    // Nothing in there is ours.
    expect(await content()).toBe(before);
    await machine.sh(`rm -rf ${path} ${path}/ ${outside} ${leases} /run/cni`);
  }
});

test.each(["touch", "mkfifo"])("clean-up works where %s made the state directory", async (make) => {
  await using room = await openRoom();
  const { machine, container } = room;
  expect((await call(machine, container, "add")).code).toBe(0);
  await machine.sh(`mv /run/patchbay /run/moved; ${make} /run/patchbay`);
  const refused = await call(machine, container, "add");
  expect({ code: refused.code, named: names(refused, "/run/patchbay is not trusted") }).toEqual({
    code: 1,
    named: true,
  });
  for (const verb of ["gc", "del"]) {
    const { code, stderr } = await call(machine, container, verb);
    expect({ verb, code, stderr }).toEqual({ verb, code: 0, stderr: expect.stringContaining("put a directory") });
  }
  expect(await vethCount(machine)).toBe(0);
});

test("what a group may write to, or has its bit, is used as libcni and Go's plugins leave it", async () => {
  await using room = await openRoom();
  const { machine, container } = room;
  await machine.sh(`mkdir -p /var/lib/cni/results ${leases}; chmod 2775 /var/lib/cni /var/lib/cni/results ${leases}`);
  await machine.sh("mkdir -p /run/patchbay; chmod 2755 /run/patchbay");
  for (const verb of ["add", "check", "gc", "del"]) {
    const { code, stderr } = await call(machine, container, verb);
    expect({ verb, code, stderr }).toEqual({ verb, code: 0, stderr: "" });
  }
});

test("root believes no ledger of another's, in whose directory it may be", async () => {
  await using room = await openRoom();
  const { machine, container } = room;
  const spec = { ifName: "eth0", wanted: {}, backupFile: "/run/precious", before: {} };
  const header = {
    patchbay: 1,
    network: "net",
    containerId: "ctr",
    ifName: "eth0",
    plugin: "tuning",
    netnsPath: "",
    cniArgs: "",
    stdin: "{}",
  };
  const ledger = [header, { kind: "link-settings", spec }].map((line) => `${JSON.stringify(line)}\n`).join("");
  for (const [uid, mode] of [[65534, 700], [65534, 1777], [0, 1777], [0, 700]]) {
    await machine.sh(
      `rm -rf /run/theirs; mkdir -p /run/theirs/net; echo precious >/run/precious; cat >'/run/theirs/net/ctr@eth0@tuning'
      chown -R 65534 /run/theirs; chown ${uid} /run/theirs/net; chmod ${mode} /run/theirs/net`,
      { stdin: ledger },
    );
    for (const verb of ["del", "gc --all"]) {
      const { code } = await call(machine, container, verb, { PATCHBAY_STATE_DIR: "/run/theirs" });
      expect({ uid, mode, verb, code, precious: await machine.sh("cat /run/precious") })
        .toEqual({ uid, mode, verb, code: 0, precious: "precious\n" });
    }
  }
});

test("every file below the state directories is opened without following a link or waiting", async () => {
  await using room = await openRoom();
  const { machine, container } = room;
  const opens = new Set<string>();
  for (const verb of ["add", "check", "gc --all", "add", "del", "del"]) {
    const traced = ["strace", "-f", "-qq", "-e", "trace=open,openat,openat2,creat", "-o", "/run/trace"];
    const env = { NETCONFPATH: NETWORKS };
    const words = verb === "gc --all" ? [] : [container.netnsPath, "--container-id", "ctr"];
    const { code, stderr } = await machine.run([...traced, PATCHBAY, ...verb.split(" "), "net", ...words], { env });
    expect({ verb, code, stderr }).toMatchObject({ verb, code: 0 });
    for (const line of (await machine.sh("cat /run/trace")).split("\n")) {
      const [, path, flags] = /"((?:\/run\/patchbay|\/run\/cni|\/var\/lib\/cni)[^"]*)", ([A-Z_|]+)/.exec(line) ?? [];
      if (path !== undefined) opens.add(`${path.replaceAll(/[0-9a-f]{4,}/g, "#")} ${flags}`);
    }
  }
  const files = [...opens].filter((open) => !open.includes("O_DIRECTORY"));
  expect(files.length).toBeGreaterThan(stateFiles.length);
  const isSafe = (open: string) =>
    open.includes("O_NOFOLLOW") && (open.includes("O_NONBLOCK") || open.includes("O_EXCL"));
  expect(files.filter((open) => !isSafe(open))).toEqual([]);
});

test("in a user namespace, leases of users outside count, and ADD, CHECK and DEL work", async () => {
  await using room = await openRoom();
  const { machine, container } = room;
  // The directory of an outer user's files: in there, the files of outer root belong to the overflow id.
  await machine.sh(`mkdir -p /run/user/leases/net; printf 'other\\r\\neth0' >/run/user/leases/net/10.1.0.2
    : >/run/user/leases/net/lock; chown 1000 /run/user /run/user/leases /run/user/leases/net`);
  const ipam = { type: "host-local", subnet: "10.1.0.0/24", dataDir: "/run/user/leases" };
  const stdin = JSON.stringify({ cniVersion: "1.1.0", name: "net", type: "host-local", ipam });
  const inside = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "unshare", "-U", "-r"];
  const env = { CNI_CONTAINERID: "ctr", CNI_NETNS: container.netnsPath, CNI_IFNAME: "eth0", CNI_PATH: "/nowhere" };
  for (
    const [verb, left] of [["ADD", "10.1.0.2\n10.1.0.3\n"], ["CHECK", "10.1.0.2\n10.1.0.3\n"], ["DEL", "10.1.0.2\n"]]
  ) {
    const command = [...inside, `${patchbayPlugins()}/host-local`];
    const { code, stdout, stderr } = await machine.run(command, { stdin, env: { ...env, CNI_COMMAND: verb! } });
    expect({ verb, code, stdout, stderr }).toMatchObject({ verb, code: 0, stderr: "" });
    expect(await machine.sh("ls /run/user/leases/net | grep '^10' || true")).toBe(left!);
  }
});

test("install's record of directories counts only when it is root's", async () => {
  await using machine = await openMachine();
  const bin = "/run/plugins", record = `${bin}/.patchbay-bin`, outside = "/run/outside";
  for (const [what, script] of Object.entries(spoilings)) {
    await machine.sh(`mkdir -p ${bin} ${outside}/bin; ln -s ${bin}/patchbay ${outside}/bin/patchbay
      (umask 077; echo ${outside}/bin >${record}); P=${record} D=${outside}; ${script}`);
    const { code, stderr } = await machine.run([
      "timeout",
      "-s",
      "KILL",
      "120",
      PATCHBAY,
      "install",
      "--uninstall",
      bin,
    ]);
    const isThere = await machine.sh(`readlink ${outside}/bin/patchbay || true`);
    expect({ what, isThere, stderr }).toEqual({
      what,
      isThere: `${bin}/patchbay\n`,
      stderr: expect.stringContaining(record),
    });
    expect({ what, code }).toEqual({ what, code: 0 });
    await machine.sh(`rm -rf ${bin} ${outside}`);
  }
});
