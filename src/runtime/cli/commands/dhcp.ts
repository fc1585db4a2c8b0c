/** `patchbay dhcp`. */
import type { Command } from "../command.ts";

export const dhcpCommand: Command = {
  summary: "stay, and hold the leases of the plugin dhcp: renew them, and give them back",
  operands: "",
  operandCount: [0, 0],
  needsRoot: true,
  options: {
    socketpath: { value: "PATH", help: "listen here (/run/cni/dhcp.sock)" },
    datadir: { value: "DIR", help: "directory of the leases (/var/lib/cni/dhcp)" },
    hostprefix: { value: "PATH", help: "where the host's root directory is, for a service in a container" },
    pidfile: { value: "FILE", help: "write the process id to this file" },
    broadcast: { help: "ask servers for answers that every host of the link receives" },
    timeout: { value: "DURATION", help: "the first wait for an answer (250ms)" },
    resendmax: { value: "DURATION", help: "the longest wait between two messages of an ADD (16s)" },
    resendtimeout: { value: "DURATION", help: "when ADD gives up (1m)" },
  },
  notes: "The same as 'dhcp daemon', with the flags of the reference plugin.\n",
  run(given, _program, resident) {
    const flags = Object.entries(dhcpCommand.options).filter(([name]) => given.has(name))
      .map(([name, { value }]) => value === undefined ? `-${name}` : `-${name}=${given.value(name)}`);
    return resident.holdLeases(flags);
  },
};
