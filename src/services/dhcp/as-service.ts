/**
 * The service that holds DHCP leases, `patchbay dhcp`. Its units have the names of the reference plugin's from
 * `install --dhcp`, and names of their own from packages.
 */
import type { ServiceRow, Units } from "../service.ts";
import { flagsOfService, problemOf } from "./service/flags.ts";

/** Debian's containernetworking-plugins has files of the reference plugin's names. */
const PACKAGED = "patchbay-dhcp";

const socketUnit = (name: string) =>
  `# Changes belong into a file of their own: systemctl edit ${name}.socket

[Unit]
Description=Socket of Patchbay's DHCP service for containers
PartOf=${name}.service

[Socket]
ListenStream=/run/cni/dhcp.sock
SocketMode=0600
SocketUser=root
SocketGroup=root
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`;

function serviceUnit(name: string, program: string): string {
  return `# Changes belong into a file of their own: systemctl edit ${name}.service

[Unit]
Description=Patchbay's DHCP service, which holds the leases of containers
Documentation=man:systemd.service(5)
After=network.target ${name}.socket
Requires=${name}.socket

[Service]
Type=notify
ExecStart=${program} dhcp
# Leases have to be renewed whether or not somebody asks for one.
Restart=always
# Its leases are the only files that it writes. With --datadir DIR or --pidfile DIR/FILE it needs ReadWritePaths=DIR, too.
StateDirectory=cni/dhcp
StateDirectoryMode=0700
UMask=0077
ProtectSystem=strict
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectClock=yes
ProtectHostname=yes
PrivateDevices=yes
KeyringMode=private
NoNewPrivileges=yes
# Addresses and routes; packets; port 68; entering namespaces, also by the paths of processes and of other users.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_NET_BIND_SERVICE CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_READ_SEARCH
RestrictAddressFamilies=AF_UNIX AF_NETLINK AF_PACKET AF_INET AF_INET6
RestrictNamespaces=net
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
# A system call that is not permitted fails and does not end the service: a new C library may try others first.
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources process_vm_readv process_vm_writev
# Not here: ProtectKernelTunables= (IPv6 needs sysctls of containers' links), MemoryDenyWriteExecute= (the runtime does not
# start with it), ProtectHome= and PrivateTmp= (engines may have containers' namespaces there).

[Install]
WantedBy=multi-user.target
`;
}

function unitsNamed(name: string): Units {
  return {
    socket: { name: `${name}.socket`, text: socketUnit(name) },
    service: { name: `${name}.service`, text: (program) => serviceUnit(name, program) },
  };
}

export const dhcpService: ServiceRow = {
  command: "dhcp",
  option: "dhcp",
  help: {
    install: "also let systemd run `patchbay dhcp` from DIR, for the leases of the plugin dhcp",
    remove: "remove what --dhcp made; nobody renews leases",
  },
  units: unitsNamed("cni-dhcp"),
  packagedUnits: unitsNamed(PACKAGED),
  mark: "# Written by `patchbay install --dhcp`, and written again by the next.",
  outlook: "the first ADD with the IPAM plugin dhcp starts the service; `patchbay ipam list` shows its leases",
  withoutSystemd: (program) =>
    [
      "start this as root and keep it running:",
      "",
      `  ${program} dhcp`,
      "",
      "It ends at SIGTERM; the leases stay, and the next one goes on with them.",
      "",
    ].join("\n"),
  daemon: {
    summary: "stay, and hold the leases of the plugin dhcp: renew them, and give them back",
    flags: flagsOfService,
    notes: "The same as 'dhcp daemon', whose flags have one dash instead of two.\n",
    examples: [{ args: "--broadcast", what: "where servers' answers to one address do not arrive" }],
    problemOf,
    run: (flags) => (require("./service/daemon.ts") as typeof import("./service/daemon.ts")).runDaemon(flags),
  },
};
