/**
 * Every place that executes a file which it finds by a path, and every way in which somebody else could have put it there.
 * The files are scripts that write down that they ran.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { resolve } from "node:path";
import { type Machine, openMachine } from "../support/machine.ts";
import { creation } from "../support/netavark/creation.ts";
import { addNames, doNames, names, openBridges } from "../support/netavark/names.ts";
import { netavark } from "../support/netavark/netavark.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const source = resolve(import.meta.dir, "../../src");

/** Where the file is, and what others may write to. */
const D = "/run/programs", ELSEWHERE = "/run/elsewhere", RAN = "/run/ran";

interface Place {
  /** The name of the file in the directory. */
  name: string;
  /** Once, before the first. */
  prepare?(machine: Machine): Promise<unknown>;
  /** Returns what is said. */
  execute(machine: Machine): Promise<string>;
}

/** Machines are entered with it. */
const tools = mkdtempSync(`${tmpdir()}/executables-`);
beforeAll(() => symlinkSync(Bun.which("nsenter")!, `${tools}/nsenter`));
afterAll(() => rmSync(tools, { recursive: true }));

const env = { PATH: `${D}:${tools}` };
const web = (binary: string) => names("web1", "10.55.0.7", ["web"], { binary });
const said = ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr;
const ownProgram = `#!/bin/sh\necho no server >&2; exit 1\n`;

const places: Record<string, Place> = {
  "a plugin of a chain": {
    name: "pear",
    prepare: (machine) =>
      machine.sh("mkdir /run/conf; cat >/run/conf/n.conflist; ip netns add c1", {
        stdin: JSON.stringify({ cniVersion: "1.0.0", name: "n", plugins: [{ type: "pear" }] }),
      }),
    execute: async (machine) =>
      said(
        await machine.run([PATCHBAY, "add", "n", "/var/run/netns/c1"], {
          env: { NETCONFPATH: "/run/conf", CNI_PATH: D },
        }),
      ),
  },
  "a plugin's IPAM plugin": {
    name: "pear",
    prepare: (machine) => machine.sh("ip netns add c1"),
    execute: async (machine) => {
      const conf = { cniVersion: "1.0.0", name: "n", type: "bridge", ipam: { type: "pear" } };
      const container = { name: "c1", netnsPath: "/var/run/netns/c1" };
      const env = { CNI_PATH: D };
      return said(await cni(machine, patchbayPlugins(), { plugin: "bridge", command: "ADD", container, conf, env }));
    },
  },
  "a driver of podman's networks": {
    name: "pear",
    execute: async (machine) =>
      said(await netavark(machine, ["--plugin-directory", D, "create"], creation({ driver: "pear" }))),
  },
  "aardvark-dns": {
    name: "aardvark-dns",
    prepare: openBridges,
    execute: async (machine) => String(await addNames(machine, web(`${D}/aardvark-dns`))),
  },
  "aardvark-dns where systemd runs": {
    name: "aardvark-dns",
    prepare: async (machine) => {
      await openBridges(machine);
      // As systemd-run, which executes the words after its options.
      await machine.sh(
        "mkdir -p /run/systemd/system /run/bin; cat >/run/bin/systemd-run; chmod +x /run/bin/systemd-run",
        {
          stdin: '#!/bin/sh\nshift 2\nexec "$@"\n',
        },
      );
    },
    execute: async (machine) =>
      String(
        (await doNames(machine, [{ verb: "add", spec: web(`${D}/aardvark-dns`) }], {
          env: { PATH: `/run/bin:${tools}` },
        })).outcomes,
      ),
  },
  "systemd-run": {
    name: "systemd-run",
    prepare: async (machine) => {
      await openBridges(machine);
      await machine.sh("mkdir -p /run/systemd/system; cat >/run/aardvark-dns; chmod +x /run/aardvark-dns", {
        stdin: ownProgram,
      });
    },
    execute: async (machine) =>
      String((await doNames(machine, [{ verb: "add", spec: web("/run/aardvark-dns") }], { env })).outcomes),
  },
  systemctl: {
    name: "systemctl",
    prepare: (machine) => machine.sh("mkdir -p /run/systemd/system; mount -t tmpfs tmpfs /etc/systemd"),
    execute: async (machine) => said(await machine.run([PATCHBAY, "install", "--resident", "/run/cni"], { env })),
  },
  "iptables-restore": {
    name: "iptables-legacy-restore",
    execute: (machine) =>
      inProcess(machine, "interop/iptables/legacy-table.ts", 'changeTable("nat", 4, (t) => t.createChain("A"))'),
  },
};

/** For what needs more than the machine has: older tables, SELinux. */
async function inProcess(machine: Machine, module: string, call: string): Promise<string> {
  const program = `const module = require(${JSON.stringify(`${source}/${module}`)}); module.${call};`;
  return said(await machine.run([process.execPath, "-e", program], { env }));
}

interface Way {
  what: string;
  /** A script for the shell, with the directory as $D, the file as $F and the place of others as $E. */
  prepare: string;
  /** What everybody may write to, or that it runs. */
  refused?: "F" | "D" | "E" | "E/file";
  runs?: true;
}

const ways: Way[] = [
  { what: "nobody else may write to it", prepare: "", runs: true },
  { what: "it is the user's who packed it", prepare: "chown -R 1001:1001 $D", runs: true },
  { what: "its group may write to it", prepare: "chmod 775 $F $D", runs: true },
  { what: "a link leads to it", prepare: "mv $F $E/file; ln -s ../elsewhere/file $F", runs: true },
  { what: "everybody may write to it", prepare: "chmod 757 $F", refused: "F" },
  { what: "everybody may write to its directory", prepare: "chmod 777 $D", refused: "D" },
  { what: "everybody may make files in its directory", prepare: "chmod 1777 $D", refused: "D" },
  {
    what: "everybody may write to what a link leads to",
    prepare: "mv $F $E/file; chmod o+w $E/file; ln -s $E/file $F",
    refused: "E/file",
  },
  {
    what: "a link leads where everybody may write",
    prepare: "mv $F $E/file; chmod 777 $E; ln -s $E/file $F",
    refused: "E",
  },
  {
    what: "a link leads through a link that everybody may replace",
    prepare: "mv $F $D/file; ln -s $D/file $E/link; chmod 777 $E; ln -s $E/link $F",
    refused: "E",
  },
  { what: "it is a FIFO", prepare: "rm $F; mkfifo -m 755 $F" },
  { what: "it is a directory", prepare: "rm $F; mkdir $F" },
  { what: "it is a device", prepare: "rm $F; mknod -m 755 $F c 1 3" },
];

for (const [place, { name, prepare, execute }] of Object.entries(places)) {
  test(`${place}: what is executed, and what is said`, async () => {
    await using machine = await openMachine();
    await prepare?.(machine);
    const script = `#!/bin/sh\necho "\${0##*/}" >>${RAN}\nexit 1\n`;
    for (const { what, runs, refused, ...way } of ways) {
      const at = { F: `${D}/${name}`, D, E: ELSEWHERE, "E/file": `${ELSEWHERE}/file` };
      await machine.sh(
        `rm -rf ${D} ${ELSEWHERE} ${RAN}; umask 022; mkdir ${D} ${ELSEWHERE}; cat >${at.F}; chmod 755 ${at.F}`,
        {
          stdin: script,
        },
      );
      await machine.sh(`D=${D}; E=${ELSEWHERE}; F=${at.F}; ${way.prepare}`);
      const words = await execute(machine);
      const ran = await machine.sh(`sort -u ${RAN} 2>/dev/null || true`);
      expect({ what, ran, words }).toEqual({ what, ran: runs ? `${name}\n` : "", words: expect.any(String) });
      if (refused !== undefined) expect(words).toContain(`${at[refused]}`);
      if (refused !== undefined) expect(words).toContain("everybody may write to it");
    }
  });
}

test("no other file of the sources executes one that it finds by a path", () => {
  const uses = (name: RegExp) =>
    readdirSync(source, { recursive: true }).map(String).filter((file) =>
      file.endsWith(".ts") && name.test(readFileSync(`${source}/${file}`, "utf8"))
    ).sort();
  expect(uses(/\brunTrusted\(/)).toEqual([
    "cluster-stores/kubernetes/credential-program.ts",
    "conformance/trial.ts",
    "engine/delegation/foreign-plugin.ts",
    "frontends/netavark/run-foreign-driver.ts",
    "install/units.ts",
    "interop/iptables/legacy-table.ts",
    "process/trusted-executable.ts",
    "resources/link/tap/selinux-tap.ts",
    "resources/netavark/aardvark-names/daemon.ts",
  ]);
  // Our own program by /proc/self/exe, programs of ours in memory, and what is judged beforehand (frontends/resident/own-file.ts,
  // install/program-of-host.ts).
  expect(uses(/\b(runProgram|spawn|execute)\(/)).toEqual([
    "conformance/own-process-namespace.ts",
    "ffi/reaper.ts",
    "ffi/spawn.ts",
    "frontends/resident/by-call.ts",
    "frontends/resident/lease-service.ts",
    "frontends/resident/own-file.ts",
    "frontends/resident/serve.ts",
    "frontends/resident/workers.ts",
    "install/program-of-host.ts",
    "process/run-program.ts",
    "process/trusted-executable.ts",
    "services/daemon/daemon.ts",
  ]);
  expect(uses(/\bBun\.spawn(Sync)?\(|"node:child_process"/)).toEqual([]);
});
