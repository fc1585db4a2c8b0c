/** The options of `netavark dhcp-proxy`. */
import { variable } from "../../ffi/environment.ts";
import { runProxy } from "../dhcp-proxy/daemon.ts";
import type { Call } from "./call.ts";

const DIRECTORY = "/run/podman", PATIENCE_S = 8, IDLE_AFTER_S = 300;
/** That is netavark's name for it. */
const DIRECTORY_VARIABLE = "NETAVARK_PROXY_RUN_DIR_ENV";

export function dhcpProxy({ optional }: Call): number {
  const options = {
    directory: variable(DIRECTORY_VARIABLE) ?? optional("dir") ?? DIRECTORY,
    socket: optional("uds"),
    patience: Number(optional("timeout") ?? PATIENCE_S),
    idleAfter: Number(optional("activity-timeout") ?? IDLE_AFTER_S),
  };
  return runProxy(options, process.argv.slice(2));
}
