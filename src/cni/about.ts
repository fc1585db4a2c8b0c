/**
 * What a plugin says about itself: in answer to VERSION, and when it runs without CNI_COMMAND. Programs read both:
 * container engines probe VERSION, and nerdctl reads the firewall plugin's version from the run without a command.
 */
import { CURRENT_VERSION } from "./versions.ts";

/** The release of the reference plugins that ours replace. */
export const REFERENCE_RELEASE = "1.10.0";
/** Plugins of ours that the reference plugins have in no release, or not in every one that hosts have. */
export const NOT_IN_EVERY_RELEASE: readonly string[] = ["dummy", "flannel", "ovs", "patchbay-cluster", "tap"];

/** For stderr, with exit status 0. A semantic version: the reference's, and ours as build metadata. */
export function aboutText(plugin: string, programVersion: string, supported: readonly string[]): string {
  return `CNI ${plugin} plugin v${REFERENCE_RELEASE}+patchbay.${programVersion}\n` +
    `CNI protocol versions supported: ${supported.join(", ")}\n`;
}

/** For stdout. Like the reference library, states our newest version whatever the version of the call. */
export function versionDocument(supported: readonly string[]): string {
  return `${JSON.stringify({ cniVersion: CURRENT_VERSION, supportedVersions: supported })}\n`;
}
