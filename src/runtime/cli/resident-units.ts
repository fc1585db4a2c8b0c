/** `install --resident`: the resident (`patchbay serve`) as a service of systemd, started by the first call. */
import { findInPath } from "../../ffi/find-in-path.ts";
import { environmentBlock } from "../../ffi/environment.ts";
import { exists, makeDirectories, readTextFile, removeFile, replaceFile } from "../../ffi/files.ts";
import { fromUtf8, utf8 } from "../../ffi/libc.ts";
import { runProgram } from "../../ffi/spawn.ts";
import { absolutePath } from "./network-arguments.ts";
import { print, printLine } from "./output.ts";

/** sd_booted(3) */
const BOOTED = "/run/systemd/system";
const UNITS = "/etc/systemd/system";
const SOCKET = "patchbay.socket", SERVICE = "patchbay.service";
const MARK = "# Written by `patchbay install --resident`, and written again by the next.";

const socketUnit = `${MARK}
# Changes belong into a file of their own: systemctl edit ${SOCKET}

[Unit]
Description=Socket of Patchbay, CNI plugins

[Socket]
# src/resident/socket.ts; launchers look nowhere else.
ListenSequentialPacket=/run/patchbay/serve.sock
# Nobody but root. Who is served, the resident decides by what the kernel says of each caller.
DirectoryMode=0700
SocketMode=0600
# As many calls may wait as with a resident that was started by hand.
Backlog=1024
# Where the socket is gone, calls run by themselves at once. At one that nobody reads, they would wait a second.
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`;

function serviceUnit(program: string): string {
  return `${MARK}
# Changes belong into a file of their own: systemctl edit ${SERVICE}
#
# The resident serves callers that are like itself: the same namespaces, root directory, capabilities and seccomp mode
# as container engines have. What makes a service different from them in one of these would make it decline every call.
# So there is no ProtectSystem=, ProtectHome=, PrivateTmp= or ReadWritePaths= (each gives a mount namespace), no
# PrivateNetwork=, PrivateUsers= or CapabilityBoundingSet=, and no SystemCallFilter=, RestrictNamespaces=,
# RestrictRealtime=, RestrictSUIDSGID=, LockPersonality= or MemoryDenyWriteExecute= (each is seccomp's).
# Nor is there a limit that would fail a call which succeeds by itself: TasksMax=, MemoryMax=, DevicePolicy=,
# IPAddressDeny=. NoNewPrivileges= would change nothing for root, but foreign plugins could not change their SELinux
# domain or AppArmor profile.

[Unit]
Description=Patchbay's resident, which serves calls of CNI plugins
Requires=${SOCKET}
After=${SOCKET}

[Service]
# It says when its workers are there.
Type=notify
ExecStart=${quoted(program)} serve
# After an end that it did not choose. After any other, the next call starts it.
Restart=on-failure
# SIGTERM goes to the parent alone: its workers end after their calls. What a foreign plugin left running for a
# container is not killed with it.
KillMode=process
# One that is killed for its memory has its call run again by itself; the others need not end for that.
OOMPolicy=continue
# Killed after containers, before the engine: nothing fails without it.
OOMScoreAdjust=-500
`;
}

export function installResident(directory: string): void {
  const program = `${absolutePath(directory)}/patchbay`;
  if (!exists(BOOTED)) {
    print(withoutSystemd(program));
    return;
  }
  const changed = [
    writeUnit(SOCKET, socketUnit),
    writeUnit(SERVICE, serviceUnit(program)),
  ].includes(true);
  if (changed) systemctl("daemon-reload");
  systemctl("enable", "--now", SOCKET);
  // One that runs has what the units said before.
  if (changed) systemctl("try-restart", SERVICE);
  printLine(`the first call starts the resident; \`patchbay serve --status\` says what it does`);
}

/** Does nothing when there are no units of ours. With a program: only when they start that one. */
export function removeResident(directory?: string): boolean {
  const service = readTextFile(`${UNITS}/${SERVICE}`), socket = readTextFile(`${UNITS}/${SOCKET}`);
  const isOfOther = directory !== undefined &&
    !service?.includes(`\nExecStart=${quoted(`${absolutePath(directory)}/patchbay`)} serve\n`);
  if (isOfOther || !(service?.startsWith(MARK) || socket?.startsWith(MARK))) return false;
  if (exists(BOOTED)) systemctl("disable", "--now", SOCKET, SERVICE);
  for (const [unit, text] of [[SOCKET, socket], [SERVICE, service]] as const) {
    if (text?.startsWith(MARK) && removeFile(`${UNITS}/${unit}`)) printLine(`${UNITS}/${unit}: removed`);
  }
  if (exists(BOOTED)) systemctl("daemon-reload");
  return true;
}

/** Answers whether it was another before. */
function writeUnit(name: string, text: string): boolean {
  const path = `${UNITS}/${name}`, present = readTextFile(path);
  if (present === text) return false;
  if (present !== undefined && !present.startsWith(MARK)) {
    throw new Error(`${path} was not written by patchbay; remove it, or keep it and leave --resident out`);
  }
  makeDirectories(UNITS, 0o755);
  replaceFile(path, text, { mode: 0o644, durable: true });
  printLine(`${path}: ${present === undefined ? "installed" : "replaced"}`);
  return true;
}

function systemctl(...words: string[]): void {
  const path = findInPath("systemctl");
  if (path === undefined) throw new Error("there is no systemctl in PATH, though systemd runs");
  const environment = fromUtf8(environmentBlock()).split("\0").slice(0, -1).map(utf8);
  const { ending, stderr } = runProgram({ path, argv: ["systemctl", ...words], environment }, new Uint8Array());
  if ("exitStatus" in ending && ending.exitStatus === 0) return;
  throw new Error(`systemctl ${words.join(" ")} failed: ${fromUtf8(stderr).trim() || JSON.stringify(ending)}`);
}

/** systemd.service(5), "Command lines". */
function quoted(path: string): string {
  const text = path.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w@%+=:,./$-]+$/.test(text) ? text : `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

function withoutSystemd(program: string): string {
  return [
    `systemd does not run here (there is no ${BOOTED}), so no service was installed. Instead, have the init system`,
    "start this as root and keep it running, in the namespaces of the container engine:",
    "",
    `  ${program} serve`,
    "",
    "From a privileged container with the host's process namespace (hostPID, --pid=host):",
    "",
    `  nsenter --target 1 --mount --net -- ${program} serve`,
    "",
    "It ends at SIGTERM. `patchbay serve --status` says what it does.",
    "",
  ].join("\n");
}
