/** `install --dhcp`: the service that holds DHCP leases (`patchbay dhcp`), under the names of the reference plugin's units. */
import { absolutePath } from "./network-arguments.ts";
import { print, printLine } from "./output.ts";
import { BOOTED, installUnits, quoted, removeUnits, type ServiceUnits, systemdRuns } from "./units.ts";

const SOCKET = "cni-dhcp.socket", SERVICE = "cni-dhcp.service";
const MARK = "# Written by `patchbay install --dhcp`, and written again by the next.";

const socketUnit = `${MARK}
# Changes belong into a file of their own: systemctl edit ${SOCKET}

[Unit]
Description=Socket of Patchbay's DHCP service for containers
PartOf=${SERVICE}

[Socket]
ListenStream=/run/cni/dhcp.sock
SocketMode=0600
SocketUser=root
SocketGroup=root
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`;

function serviceUnit(program: string): string {
  return `${MARK}
# Changes belong into a file of their own: systemctl edit ${SERVICE}

[Unit]
Description=Patchbay's DHCP service, which holds the leases of containers
Documentation=man:systemd.service(5)
After=network.target ${SOCKET}
Requires=${SOCKET}

[Service]
Type=notify
ExecStart=${quoted(program)} dhcp
# Leases have to be renewed whether or not somebody asks for one.
Restart=always
NoNewPrivileges=yes
# Addresses and routes; packets; port 68; entering namespaces, also by the paths of processes.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_OVERRIDE

[Install]
WantedBy=multi-user.target
`;
}

function unitsOf(program: string): ServiceUnits {
  return {
    socket: { name: SOCKET, text: socketUnit },
    service: { name: SERVICE, text: serviceUnit(program) },
    mark: MARK,
    option: "dhcp",
  };
}

export function installDhcp(directory: string): void {
  const program = `${absolutePath(directory)}/patchbay`;
  if (!systemdRuns()) return print(withoutSystemd(program));
  installUnits(unitsOf(program));
  printLine("the first ADD with the IPAM plugin dhcp starts the service; `patchbay ipam list` shows its leases");
}

/** Does nothing when there are no units of ours. With a program: only when they start that one. */
export function removeDhcp(directory?: string): boolean {
  const program = directory === undefined ? "" : `${absolutePath(directory)}/patchbay`;
  const starts = `\nExecStart=${quoted(program)} dhcp\n`;
  return removeUnits(unitsOf(program), (text) => directory === undefined || text.includes(starts));
}

function withoutSystemd(program: string): string {
  return [
    `systemd does not run here (there is no ${BOOTED}), so no service was installed. Instead, have the init system`,
    "start this as root and keep it running:",
    "",
    `  ${program} dhcp`,
    "",
    "It ends at SIGTERM; the leases stay, and the next one goes on with them.",
    "",
  ].join("\n");
}
