/**
 * The resident under systemd: its socket handed over as systemd does, the word that it is ready, and what
 * `patchbay install` writes and asks of systemctl. No systemd runs: systemd-socket-activate(1) hands over,
 * systemd-analyze(1) reads the units, and a script in PATH writes down what systemctl is asked for.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "bun:test";
import { untilListening } from "../../support/listening.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { network } from "../../support/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { unitHost } from "../../support/unit-host.ts";
import { SOCKET, startResident, terminate } from "../../support/resident.ts";
import { statusOf, untilServed } from "../../support/resident-status.ts";
import { untilTrue } from "../../support/until-true.ts";

const conf = { type: "bridge", isGateway: true, ipam: { type: "host-local", subnet: "10.1.0.0/24" } };

/** It listens, and becomes the resident when the first caller connects. */
async function activated(machine: Machine) {
  await machine.sh("mkdir -p /run/patchbay");
  const activator = machine.start(["systemd-socket-activate", "--seqpacket", "-l", SOCKET, PATCHBAY, "serve"]);
  await untilListening(machine, SOCKET);
  return activator;
}

test("the first call starts it, and finds it; at SIGTERM the socket stays the service manager's", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  for (let turn = 0; turn < 3; turn++) {
    await machine.sh(`rm -f ${SOCKET}`);
    const resident = await activated(machine);
    expect(readFileSync(`/proc/${resident.pid}/comm`, "utf8")).toBe("systemd-socket-\n");
    await net.once(container);
    expect((await statusOf(machine)).pid).toBe(resident.pid);
    await terminate(resident);
    expect(await machine.sh(`ls ${SOCKET}`)).toBe(`${SOCKET}\n`);
  }
});

test("--status starts it, too, and waits for its workers", async () => {
  await using machine = await openMachine();
  const resident = await activated(machine);
  const { code, stdout } = await machine.run([PATCHBAY, "serve", "--status"]);
  expect([code, stdout]).toEqual([0, expect.stringContaining("calls of this program are served\n")]);
  // A socket of its own takes the place of one that was removed, and that one it removes.
  await machine.sh("rm -r /run/patchbay");
  expect((await untilServed(machine)).pid).toBe(resident.pid);
  await terminate(resident);
  expect(await machine.sh("ls -A /run/patchbay")).toBe("");
});

test("a socket of another type is refused", async () => {
  await using machine = await openMachine();
  await machine.sh("mkdir -p /run/patchbay");
  const resident = machine.start(["systemd-socket-activate", "-l", SOCKET, PATCHBAY, "serve"]);
  await untilListening(machine, SOCKET);
  await machine.run([
    process.execPath,
    "-e",
    `require("node:net").connect("${SOCKET}").on("connect", () => process.exit())`,
  ]);
  expect(await resident.exited).toBe(1);
  expect(await resident.stderr.text()).toContain(
    "patchbay serve: the socket that was given is not of the type SOCK_SEQPACKET\n",
  );
});

/** Prints the datagrams that come to the address, a line each. */
const listener = (address: string) => `
  import { bind, libc } from "${import.meta.dir}/../../../src/ffi/libc.ts";
  import { unixAddress } from "${import.meta.dir}/../../../src/ffi/socket/unix.ts";
  const fd = libc.socket(1, 2, 0);
  const address = unixAddress("${address}".replace("@", "\\0"));
  if (libc.bind(fd, address, address.length) !== 0) throw new Error("bind");
  console.log("bound");
  for (let count = 0; count < 2; count++) {
    const text = new Uint8Array(100);
    console.log(new TextDecoder().decode(text.subarray(0, Number(libc.recvfrom(fd, text, 100, 0, null, null)))));
  }
`;

test.each(["/run/notify", "@patchbay-test"])("it says at %s when it is ready, and when it ends", async (address) => {
  await using machine = await openMachine();
  const manager = machine.start([process.execPath, "-e", listener(address)]);
  const lines: string[] = [];
  const reading = (async () => {
    for await (const chunk of manager.stdout) lines.push(...new TextDecoder().decode(chunk).trim().split("\n"));
  })();
  await untilTrue(() => lines, (found) => found.includes("bound"));
  const resident = machine.start(["env", `NOTIFY_SOCKET=${address}`, PATCHBAY, "serve"]);
  await untilTrue(() => lines, (found) => found.includes("READY=1"));
  expect((await statusOf(machine)).problem).toBeUndefined();
  await terminate(resident);
  await reading;
  expect(lines).toEqual(["bound", "READY=1", "STOPPING=1"]);
});

const UNITS = ["/etc/systemd/system/patchbay.socket", "/etc/systemd/system/patchbay.service"];

test("install --resident writes units that systemd understands, and starts the socket", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  const first = await install("--resident");
  expect(first).toMatchObject({ code: 0, stderr: "" });
  for (const unit of UNITS) expect(first.stdout).toContain(`${unit}: installed\n`);
  expect(first.asked).toEqual(["daemon-reload", "enable --now patchbay.socket", "try-restart patchbay.service"]);
  expect(await machine.run(["systemd-analyze", "verify", ...UNITS])).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await machine.sh(`stat -c %a ${UNITS.join(" ")}`)).toBe("644\n644\n");
  // What the socket's unit says is what the program looks for, and ExecStart what was installed.
  expect(await machine.sh(`sed -n s/^ListenSequentialPacket=//p ${UNITS[0]}`)).toBe(`${SOCKET}\n`);
  expect(await machine.sh(`sed -n s/^ExecStart=//p ${UNITS[1]}`)).toBe("/run/cni/patchbay serve --idle=900\n");

  const again = await install("--resident");
  expect(again.asked).toEqual(["enable --now patchbay.socket"]);
  expect(again.stdout).not.toContain("/etc/systemd");
  await machine.sh(`sed -i s/OOMScoreAdjust.*// ${UNITS[1]}`);
  expect((await install("--resident")).stdout).toContain(`${UNITS[1]}: replaced\n`);
  expect(await install("--no-resident")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(UNITS.map((unit) => `${unit}: removed\n`).join("")),
    asked: ["disable --now patchbay.socket patchbay.service", "daemon-reload"],
  });
  expect(await machine.sh("find /etc/systemd -type f")).toBe("");
  expect((await install("--no-resident")).asked).toEqual([]);
});

test("the first installation starts the socket unasked, a later one leaves what was chosen", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true), files = () => machine.sh("find /etc/systemd -type f | wc -l");
  const first = await install();
  expect(first).toMatchObject({ code: 0, stderr: "" });
  expect(first.asked).toEqual(["daemon-reload", "enable --now patchbay.socket", "try-restart patchbay.service"]);
  expect(first.stdout).toContain("`patchbay install --no-resident /run/cni` removes that again\n");
  expect(await machine.sh(`sed -n s/^ExecStart=//p ${UNITS[1]}`)).toBe("/run/cni/patchbay serve --idle=900\n");
  expect((await install()).asked).toEqual([]);
  await install("--no-resident");
  expect([(await install()).asked, await files()]).toEqual([[], "0\n"]);
  // Nobody has chosen any more.
  await install("--uninstall");
  expect((await install("--no-resident")).asked).toEqual([]);
  await install("--uninstall");
  await machine.sh(`echo mine >${UNITS[1]}`);
  expect((await install()).asked).toEqual([]);
  expect(await machine.sh(`cat ${UNITS[1]}`)).toBe("mine\n");
});

test("a first installation succeeds also where systemctl fails, and says so", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await machine.sh("touch /run/fail");
  const { code, stderr } = await install();
  expect([code, stderr]).toEqual([0, expect.stringContaining("systemctl daemon-reload failed: ")]);
  expect(stderr).toContain(
    "Everything works without them; `patchbay install --resident /run/cni` tries it again, with `--resident=calls` a call",
  );
  expect(await machine.sh("readlink /run/cni/bridge; find /etc/systemd -type f")).toBe("patchbay\n");
});

test("a socket that cannot be started leaves no unit, and systemd none that it has read", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await machine.sh(`printf '#!/bin/sh\\necho "$@" >>/run/asked\\ntest "$1" != enable\\n' >/run/bin/systemctl`);
  const { code, stderr, asked } = await install();
  expect([code, stderr]).toEqual([0, expect.stringContaining("systemctl enable --now patchbay.socket failed: ")]);
  const undone = ["disable --now patchbay.socket patchbay.service", "daemon-reload"];
  expect(asked).toEqual(["daemon-reload", "enable --now patchbay.socket", ...undone]);
  expect(await machine.sh("find /etc/systemd -type f")).toBe("");
});

test("a unit of a package, and the service of another directory, stay", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await machine.sh("echo theirs >/run/systemd/system/patchbay.service");
  expect((await install()).asked).toEqual([]);
  await machine.sh("rm /run/systemd/system/patchbay.service");
  await install("--resident");
  const elsewhere = { env: { PATH: "/run/bin:/usr/bin:/bin" } };
  await machine.run([PATCHBAY, "install", "--no-resident", "/run/other"], elsewhere);
  expect(await machine.sh("find /etc/systemd -type f | wc -l")).toBe("2\n");
});

test("units that an earlier version wrote are removed, too", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await install();
  await machine.sh(`sed -i 's/ --idle=900//' ${UNITS[1]}`);
  expect((await install("--uninstall")).asked[0]).toBe("disable --now patchbay.socket patchbay.service");
  expect(await machine.sh("find /etc/systemd /run/cni -type f")).toBe("");
});

test("docs/resident.md says why the service's unit has what it has", async () => {
  await using machine = await openMachine();
  await (await unitHost(machine, true))("--resident");
  const service = (await machine.sh(`cat ${UNITS[1]}`)).split("[Service]\n")[1]!;
  const settings = [...service.matchAll(/^([A-Z]\w*)=(.*)$/gm)].map(([, name, value]) => [name, value]);
  const pages = readFileSync(resolve(import.meta.dir, "../../../docs/resident.md"), "utf8");
  const [list] = /^What its unit says, and why:\n\n[^]*?\n\n(?!-)/m.exec(pages)!;
  const items = [...list.matchAll(/^- `([A-Z]\w*)=(\S+)`:/gm)].map(([, name, value]) => [name, value]);
  const shown = settings.filter(([name]) => name !== "ExecStart");
  expect(shown.sort()).toEqual(items.sort());
  expect(shown).toContainEqual(["UMask", "0077"]);
});

test("a resident as the service's unit starts it serves the machine's calls", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await install("--resident");
  const command = (await machine.sh(`sed -n s/^ExecStart=//p ${UNITS[1]}`)).trim().split(" ");
  await machine.sh("mkdir -p /run/patchbay");
  const resident = machine.start(["systemd-socket-activate", "--seqpacket", "-l", SOCKET, ...command]);
  await untilListening(machine, SOCKET);
  expect((await statusOf(machine)).build).toBe("this");
  // Where the machine is busy, a call runs by itself.
  const served = async () => {
    expect((await machine.run(["/run/cni/bridge"], { env: { CNI_COMMAND: "NOPE" } })).code).toBe(1);
    return (await statusOf(machine)).served;
  };
  await untilTrue(served, (count) => count > 0);
  await terminate(resident);
});

test("--uninstall removes the units that start the program, and no others", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await install("--resident");
  // Its unit stays the first one's.
  const elsewhere = await machine.run([PATCHBAY, "install", "/run/other"]);
  expect(elsewhere.code).toBe(0);
  await machine.sh(`${PATCHBAY} install --uninstall /run/other`);
  expect(await machine.sh("find /etc/systemd -type f | wc -l")).toBe("2\n");
  expect((await install("--uninstall")).asked).toEqual([
    "disable --now patchbay.socket patchbay.service",
    "daemon-reload",
  ]);
  expect(await machine.sh("find /etc/systemd /run/cni -type f")).toBe("");
});

test("units of others stay, a failure of systemctl is said, and the options exclude each other", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, true);
  await machine.sh(`mkdir -p /etc/systemd/system; echo mine >${UNITS[1]}`);
  const refused = await install("--resident");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(`${UNITS[1]} was not written by patchbay`);
  expect(refused.asked).toEqual([]);
  expect(await machine.sh(`cat ${UNITS[1]}`)).toBe("mine\n");
  await machine.sh(`rm ${UNITS[1]}; touch /run/fail`);
  const failed = await install("--resident");
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining("systemctl daemon-reload failed: ")]);
  expect((await install("--resident", "--uninstall")).code).toBe(2);
});

test("without systemd a first installation has calls start one; later ones change what they are told to", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, false), permission = "/run/cni/.patchbay-resident";
  const isPermitted = async () => (await machine.run(["test", "-e", permission])).code === 0;
  for (
    const [words, permitted, said] of [
      [[], true, `${permission}: installed`],
      [[], true, ""],
      [["--no-resident"], false, `${permission}: removed`],
      [[], false, ""],
      [["--resident"], true, `${permission}: installed`],
      [["--resident=none"], false, `${permission}: removed`],
      [["--resident=calls"], true, `${permission}: installed`],
      [["--uninstall"], false, `${permission}: removed`],
    ] as [string[], boolean, string][]
  ) {
    const { code, stdout } = await install(...words);
    expect([words, code, await isPermitted(), stdout]).toEqual([words, 0, permitted, expect.stringContaining(said)]);
  }
  expect(await install("--resident=often")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--resident is one of auto, systemd, calls, none, not"),
  });
});

test("without systemd it says what to do instead, and writes no unit", async () => {
  await using machine = await openMachine();
  const install = await unitHost(machine, false);
  const { code, stdout, stderr, asked } = await install("--resident=systemd");
  expect({ code, stderr, asked }).toEqual({ code: 0, stderr: "", asked: [] });
  expect(stdout).toContain("systemd does not run here");
  expect(stdout).toContain("  /run/cni/patchbay serve\n");
  expect(await machine.sh("find /etc/systemd -type f")).toBe("");
  // The plugins are installed; what it says works: a resident from outside, in the machine's namespaces.
  const resident = await startResident(machine);
  await untilServed(machine);
  await terminate(resident);
});
