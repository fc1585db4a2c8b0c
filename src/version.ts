/** Which Patchbay this is, and which release of the reference plugins it stands in for. */
import { version } from "../package.json";

export const VERSION: string = version;

/**
 * The version plugins name when run bare. nerdctl parses it as semver and wants at least 1.7.1 of `firewall`; what
 * follows the plus sign does not count in comparisons.
 */
export const PLUGIN_VERSION = `v1.9.1+patchbay.${version}`;
