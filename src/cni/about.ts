/**
 * What a plugin says of itself: to VERSION, and when it is run bare. Both are read by programs: container engines
 * probe VERSION, and nerdctl takes the version of the firewall plugin from the bare run to know what it can do.
 */
import { CURRENT_VERSION } from "./versions.ts";

/** The release of the reference plugins that ours stand in for. */
const REFERENCE_RELEASE = "v1.9.1";

/** For stderr, with exit status 0. The version is semantic: that of the reference, and ours behind the plus sign. */
export function aboutText(plugin: string, programVersion: string, supported: readonly string[]): string {
  return `CNI ${plugin} plugin ${REFERENCE_RELEASE}+patchbay.${programVersion}\n` +
    `CNI protocol versions supported: ${supported.join(", ")}\n`;
}

/** For stdout. The reference library states its own newest version, whatever it was asked in; so do we. */
export function versionDocument(supported: readonly string[]): string {
  return `${JSON.stringify({ cniVersion: CURRENT_VERSION, supportedVersions: supported })}\n`;
}
