/**
 * Files about the rules of a network and of one of its containers, for another program: the distribution's netavark. Its
 * units netavark-firewalld-reload.service and netavark-nftables-reload.service start it by its path, also when podman calls
 * this program. After a reload of firewalld or nftables it restores all rules from these files. Our own `firewall-reload`
 * uses the ledgers, and these files where a container has none.
 */
import { resource, type ResourceKind } from "../../contract/resource.ts";
import { undoAfter } from "../../contract/undo.ts";
import { exists, makeDirectories, replaceFile } from "../../ffi/files.ts";
import { removeStateFile, whileStateLocked } from "../../process/state-file.ts";
import { isSpare } from "./shared/bridge.ts";
import { firewallFiles } from "./shared/config-directory.ts";

export interface FirewallStateSpec {
  /** `firewallDirectory` of shared/config-directory.ts. */
  directory: string;
  driver: string;
  bridge: string;
  networkId: string;
  containerId: string;
  /** The documents in netavark's form. */
  network: Record<string, unknown>;
  container: Record<string, unknown>;
}

export const firewallStateKind: ResourceKind<FirewallStateSpec> = {
  kind: "firewall-state",
  apply(spec, host) {
    const { directory, driver, network, container } = spec, { ofNetwork, ofContainer } = pathsOf(spec);
    const files = firewallFiles(directory);
    makeDirectories(files.networks, 0o755);
    makeDirectories(files.containers, 0o755);
    try {
      whileLocked(spec, () => {
        write(files.driver, driver, spec);
        // Like netavark, keeps what the network's first container wrote, as long as there are containers.
        if (!exists(ofNetwork)) write(ofNetwork, JSON.stringify(network), spec);
        write(ofContainer, JSON.stringify(container), spec);
      });
    } catch (error) {
      undoAfter(error, () => firewallStateKind.remove(spec, host));
      throw error;
    }
  },
  verify(spec) {
    const { ofNetwork, ofContainer } = pathsOf(spec);
    return [ofNetwork, ofContainer].filter((path) => !exists(path)).map((path) => `${path} is missing`);
  },
  remove(spec, host) {
    if (!exists(spec.directory)) return;
    const { ofNetwork, ofContainer } = pathsOf(spec);
    whileLocked(spec, () => {
      removeStateFile(ofContainer);
      if (isSpare(spec.bridge, host)) removeStateFile(ofNetwork);
    });
  },
  repair: (spec, host) => firewallStateKind.apply(spec, host),
  describe: ({ directory }) => `state of the firewall in ${directory}`,
};

export const firewallState = resource(firewallStateKind);

function pathsOf({ directory, networkId, containerId }: FirewallStateSpec) {
  const { networks, containers } = firewallFiles(directory);
  return { ofNetwork: `${networks}/${networkId}`, ofContainer: `${containers}/${networkId}_${containerId}` };
}

/** The temporary file is outside of the folders, because netavark reads every file in them. */
function write(path: string, text: string, { directory }: FirewallStateSpec): void {
  replaceFile(path, text, { mode: 0o644, temporary: `${directory}/.new` });
}

/** netavark holds this lock while it reads the files and writes the rules. */
function whileLocked({ directory }: FirewallStateSpec, work: () => void): void {
  whileStateLocked(`${directory}/firewall-reload.lock`, work);
}
