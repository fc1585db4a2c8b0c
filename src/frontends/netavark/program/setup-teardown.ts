/** `netavark setup` and `teardown`. */
import { errorText } from "../../../cni/error.ts";
import { postponeInterruptions } from "../../../process/interruption.ts";
import { printLine, printToStderr } from "../../../process/output.ts";
import type { NetavarkSettings } from "../container/driver.ts";
import { setUpNetworks, tearDownNetworks } from "../container/networks.ts";
import { type CheckedCall, readContainerCall } from "../../../interop/podman-documents/container-call.ts";
import { within } from "../../../resources/netavark/shared/failure.ts";
import type { NetavarkCall } from "./call.ts";
import { chooseFirewall } from "./firewall-choice.ts";

/** A caller that does not get the answer believes that nothing is attached. */
export function setup(call: NetavarkCall): number {
  const container = readContainer(call), settings = settingsOf(call, container);
  if (settings.firewall === "firewalld") requireFirewalld();
  const blocks = setUpNetworks(container, call.operand, settings);
  try {
    printLine(JSON.stringify(blocks));
    return 0;
  } catch (error) {
    printToStderr(`the answer cannot be written, so the container is detached again: ${errorText(error)}`);
    tearDownNetworks(container, call.operand, settings);
    return 1;
  }
}

export function teardown(call: NetavarkCall): undefined {
  const container = readContainer(call);
  // podman is often stopped together with its container.
  postponeInterruptions();
  tearDownNetworks(container, call.operand, settingsOf(call, container));
}

function readContainer({ readInput }: NetavarkCall): CheckedCall {
  return within("failed to load network options", () => readContainerCall(readInput()));
}

function requireFirewalld(): void {
  const { requireBus } = require(
    "../../../interop/firewalld/client.ts",
  ) as typeof import("../../../interop/firewalld/client.ts");
  within("Error retrieving dbus connection for requested firewall backend", requireBus);
}

function settingsOf({ options, hasFile }: NetavarkCall, { isListed }: CheckedCall): NetavarkSettings {
  const firewall = chooseFirewall(options.firewallDriver), { firewallDriver: _, ...rest } = options;
  return {
    ...rest,
    firewall,
    // podman before 6 sends a map on stdin, and expects networks that do not say it to reach each other.
    isolatesByDefault: isListed || hasFile,
  };
}
