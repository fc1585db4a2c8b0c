/** The agent of a cluster's node, `patchbay node`, as a service of systemd. */
import type { ServiceRow, Units } from "../service.ts";
import { DATA_DIRECTORY } from "./paths.ts";

const SERVICE = "patchbay-node.service";

function serviceUnit(program: string): string {
  return `# Changes belong into a file of their own: systemctl edit ${SERVICE}

[Unit]
Description=Patchbay's agent, which claims blocks of addresses for this node
Documentation=man:systemd.service(5)
# After a boot, blocks are served when they have been confirmed: containers that start with the host wait less.
After=network.target
Before=containerd.service crio.service podman.service docker.service kubelet.service
# It is started again at once, whatever ended it, and however often: others rely on its noticing.
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=${program} node
Restart=always
RestartSec=1
# Nothing is to be done at its end.
KillSignal=SIGKILL
StateDirectory=patchbay
StateDirectoryMode=0700
# What ADD may give out is there, and stays when the agent ends.
RuntimeDirectory=patchbay
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
UMask=0077
ProtectSystem=strict
ProtectControlGroups=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectClock=yes
ProtectHostname=yes
PrivateDevices=yes
KeyringMode=private
NoNewPrivileges=yes
# It asks a segment for hosts that have addresses of a pool (\`probe\`).
CapabilityBoundingSet=CAP_DAC_READ_SEARCH CAP_NET_RAW
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_PACKET
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
# Not here: MemoryDenyWriteExecute= (the runtime does not start with it), ProtectHome= (a configuration may name certificates
# there).

[Install]
WantedBy=multi-user.target
`;
}

const units: Units = { service: { name: SERVICE, text: serviceUnit } };

export const nodeService: ServiceRow = {
  command: "node",
  option: "node",
  help: {
    install: "also let systemd run `patchbay node` from DIR, for pools of many hosts",
    remove: `remove what --node made; what this host has claimed stays its own, in ${DATA_DIRECTORY}`,
  },
  units,
  packagedUnits: units,
  mark: "# Written by `patchbay install --node`, and written again by the next.",
  outlook: "the agent runs; `patchbay ipam check` says what it has",
  staysElsewhere: () => (require("./what-stays.ts") as typeof import("./what-stays.ts")).blocksThatStay(),
  withoutSystemd: (program) =>
    [
      "start this as root and keep it running:",
      "",
      `  ${program} node`,
      "",
      "It may be killed at any moment; the next one goes on.",
      "",
    ].join("\n"),
};
