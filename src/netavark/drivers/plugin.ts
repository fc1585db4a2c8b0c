/** A driver that is a program of its own: a plugin of netavark. */
import type { PluginCall } from "../../documents/netavark.schema.ts";
import { setUpByPlugin, tearDownByPlugin } from "../plugins/attach.ts";
import { findPlugin } from "../plugins/find-plugin.ts";
import type { Driver, Wanted } from "./driver.ts";

export function pluginDriver({ network, attachment, call }: Wanted, directories: readonly string[]): Driver {
  const path = findPlugin(directories, network.driver);
  if (path === undefined) throw new Error(`unknown network driver "${network.driver}"`);
  const { container_id, container_name, port_mappings } = call, { name: _, ...network_options } = attachment;
  const ofPlugin: PluginCall = { container_id, container_name, port_mappings, network, network_options };
  return {
    setUp(_session, netnsPath) {
      try {
        return setUpByPlugin(path, netnsPath, ofPlugin);
      } catch (error) {
        // It may have made a part.
        tryTearDown(() => tearDownByPlugin(path, netnsPath, ofPlugin));
        throw error;
      }
    },
    tearDown: (_session, netnsPath) => tearDownByPlugin(path, netnsPath, ofPlugin),
  };
}

/** The error of `setup` is what counts. */
function tryTearDown(work: () => void): void {
  try {
    work();
  } catch {
    // podman calls `teardown` again.
  }
}
