/** `version`: the version of this program, under netavark's keys. */
import { identify } from "../../../ffi/files.ts";
import { printJson } from "../../../process/output.ts";
import { VERSION } from "../../../process/version.ts";

/** The release of netavark that this program behaves as. podman and netavark's tests read it. */
const NETAVARK = "2.1.0";

/** podman's tests compare the last word as a semantic version; what follows the plus does not count there. */
export const versionLine = `netavark ${NETAVARK}+patchbay.${VERSION}\n`;

const processors: Partial<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

export function printVersion(): undefined {
  printJson({
    version: NETAVARK,
    commit: `patchbay ${VERSION}`,
    build_time: new Date(identify("/proc/self/exe").modified * 1000).toISOString(),
    target: `${processors[process.arch] ?? process.arch}-unknown-linux-gnu`,
    default_fw_driver: "nftables",
  });
}
