/** `install --dhcp`: the service that holds DHCP leases (`patchbay dhcp`), under the names of the reference plugin's units. */
import { BOOTED, type ServiceUnits } from "./units.ts";

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
ExecStart=${program} dhcp
# Leases have to be renewed whether or not somebody asks for one.
Restart=always
NoNewPrivileges=yes
# Addresses and routes; packets; port 68; entering namespaces, also by the paths of processes.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_OVERRIDE

[Install]
WantedBy=multi-user.target
`;
}

export const dhcpUnits: ServiceUnits = {
  socket: { name: SOCKET, text: socketUnit },
  service: { name: SERVICE, text: serviceUnit },
  mark: MARK,
  option: "dhcp",
  command: "dhcp",
  outlook: "the first ADD with the IPAM plugin dhcp starts the service; `patchbay ipam list` shows its leases",
  withoutSystemd,
};

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
