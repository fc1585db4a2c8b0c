/** A machine with a network in its configuration directory, for programs that use the package. */
import { type Machine, openMachine } from "../machine.ts";

export const CONFIGURATIONS = "/run/networks";
export const options = { configDirectory: CONFIGURATIONS };
export const bridge = {
  type: "bridge",
  isGateway: true,
  ipMasq: true,
  hairpinMode: true,
  ipam: { type: "host-local", subnet: "10.1.0.0/24", routes: [{ dst: "0.0.0.0/0" }] },
};
/** The network `net`. */
export const conf = {
  cniVersion: "1.0.0",
  name: "net",
  plugins: [bridge, { type: "portmap", capabilities: { portMappings: true } }],
};

export async function machineWithNetwork(configuration: unknown = conf): Promise<Machine> {
  const machine = await openMachine();
  await machine.sh(`mkdir ${CONFIGURATIONS}; cat >${CONFIGURATIONS}/net.conflist`, {
    stdin: JSON.stringify(configuration),
  });
  return machine;
}

export function attachmentOf(name: string, more: Record<string, unknown> = {}) {
  return { containerId: name, netns: `/run/netns/${name}`, ...more };
}
