/**
 * The resident, `patchbay serve`: a service of systemd that the first call starts, or a process that a call starts.
 * Its room is frontends/resident.
 */
import { IDLE_SECONDS, PERMISSION, PERMISSION_TEXT } from "../process/resident-by-call.ts";
import { RESIDENT_SOCKET } from "../process/state-directory.ts";
import type { ServiceRow, Units } from "./service.ts";

const SOCKET = "patchbay.socket", SERVICE = "patchbay.service";

const socketUnit = `# Changes belong into a file of their own: systemctl edit ${SOCKET}

[Unit]
Description=Socket of Patchbay, CNI plugins

[Socket]
# src/process/state-directory.ts; launchers look nowhere else.
ListenSequentialPacket=${RESIDENT_SOCKET}
# Nobody but root. Who is served, the resident decides by what the kernel says of each caller.
DirectoryMode=0700
SocketMode=0600
# As many calls may wait as with a resident that was started by hand.
Backlog=1024
# Where the socket is gone, calls run by themselves at once. At one that nobody reads, each would look for workers.
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`;

function serviceUnit(program: string): string {
  return `# Changes belong into a file of their own: systemctl edit ${SERVICE}
#
# The resident serves callers that are like itself: the same namespaces, root directory, capabilities, seccomp filters and
# security label as container engines have. What makes a service different from them in one of these would make it
# decline every call.
# So there is no ProtectSystem=, ProtectHome=, PrivateTmp= or ReadWritePaths= (each gives a mount namespace), no
# PrivateNetwork=, PrivateUsers= or CapabilityBoundingSet=, and no SystemCallFilter=, RestrictNamespaces=,
# RestrictRealtime=, RestrictSUIDSGID=, LockPersonality= or MemoryDenyWriteExecute= (each is seccomp's).
# Nor is there a limit that would fail a call which succeeds by itself: TasksMax=, MemoryMax=, DevicePolicy=,
# IPAddressDeny=. NoNewPrivileges= is compared, too. Where SELinux runs and the engine has another context than this
# service, SELinuxContext= gives it the engine's.

[Unit]
Description=Patchbay's resident, which serves calls of CNI plugins
Requires=${SOCKET}
After=${SOCKET}

[Service]
# It says when its workers are there.
Type=notify
# It ends after ${IDLE_SECONDS / 60} minutes without a call, and the next call starts it again; --idle=0 is never.
ExecStart=${program} serve --idle=${IDLE_SECONDS}
# After an end that it did not choose. After any other, the next call starts it.
Restart=on-failure
# SIGTERM goes to the parent alone: its workers end after their calls. What a foreign plugin left running for a
# container is not killed with it.
KillMode=process
# One that is killed for its memory has its call run again by itself; the others need not end for that.
OOMPolicy=continue
# Killed after containers, before the engine: nothing fails without it.
OOMScoreAdjust=-500
# Whatever it makes is root's alone, also before it has chosen a mode.
UMask=0077
`;
}

const units: Units = { socket: { name: SOCKET, text: socketUnit }, service: { name: SERVICE, text: serviceUnit } };

export const residentService: ServiceRow = {
  command: "serve",
  option: "resident",
  help: {
    install:
      "how `patchbay serve` comes to run: systemd starts it for the first call (systemd), a call that runs by itself starts " +
      "it (calls), nobody does (none), or auto, as the first installation does unasked: systemd, or calls without systemd",
    remove: "leave that out, or remove it; calls run by themselves",
  },
  comesUnasked: true,
  units,
  packagedUnits: units,
  mark: "# Written by `patchbay install`; with `--resident` it writes this again.",
  outlook: "the first call starts the resident; `patchbay serve --status` says what it does",
  permission: {
    file: PERMISSION,
    text: PERMISSION_TEXT,
    outlook: "a call that runs by itself starts a resident, which serves the next ones",
  },
  withoutSystemd: (program) =>
    [
      "start this as root and keep it running, in the namespaces of the container engine:",
      "",
      `  ${program} serve`,
      "",
      "From a privileged container with the host's process namespace (hostPID, --pid=host):",
      "",
      `  patchbay serve --host=${program.slice(0, program.lastIndexOf("/"))}`,
      "",
      "It ends at SIGTERM. `patchbay serve --status` says what it does.",
      "",
    ].join("\n"),
};
