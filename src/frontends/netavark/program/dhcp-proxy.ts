/** `netavark dhcp-proxy`, which podman's units start: the service of the plugin dhcp, where those units have their socket. */
import { holdLeases } from "../../../services/dhcp/service/daemon.ts";
import { parseFlags } from "../../../services/dhcp/service/flags.ts";
import { PODMANS_SOCKET } from "../../../services/dhcp/service-protocol.ts";
import { variable } from "../../../ffi/environment.ts";
import { exists, identify, isDirectory } from "../../../ffi/files.ts";
import type { NetavarkCall } from "./call.ts";

const IDLE_AFTER_S = 300;
/** netavark's own name. */
const DIRECTORY_VARIABLE = "NETAVARK_PROXY_RUN_DIR_ENV";

export function dhcpProxy(call: NetavarkCall): number {
  return holdLeases(flagsOf(call), ["netavark", ...process.argv.slice(2)]);
}

export function flagsOf({ values }: Pick<NetavarkCall, "values">): ReturnType<typeof parseFlags> {
  const value = (name: string) => values(name)[0];
  const patience = value("timeout"), idleAfter = Number(value("activity-timeout") ?? IDLE_AFTER_S);
  return {
    ...parseFlags([]),
    socketPath: socketPath(variable(DIRECTORY_VARIABLE) ?? value("dir"), value("uds")),
    patience: patience === undefined ? undefined : Number(patience),
    idleAfter: idleAfter === 0 ? undefined : idleAfter,
  };
}

function socketPath(directory: string | undefined, socket: string | undefined): string {
  const name = PODMANS_SOCKET.slice(PODMANS_SOCKET.lastIndexOf("/"));
  if (socket === undefined) return directory === undefined ? PODMANS_SOCKET : `${directory}${name}`;
  return exists(socket) && isDirectory(identify(socket)) ? `${socket}${name}` : socket;
}
