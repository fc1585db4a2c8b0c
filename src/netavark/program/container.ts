/** `netavark setup` and `teardown`. */
import { errorText } from "../../cni/error.ts";
import { type CheckedCall, readContainerCall } from "../../documents/container-call.ts";
import { exists } from "../../ffi/files.ts";
import { blockSignals, SIGINT, SIGTERM } from "../../ffi/signals.ts";
import { within } from "../../resources/netavark/shared/failure.ts";
import { printLine, printToStderr } from "../../runtime/cli/output.ts";
import { setUp, tearDown } from "../drivers/container.ts";
import type { DriverContext } from "../drivers/driver.ts";
import type { Call } from "./call.ts";
import { chooseFirewall } from "./firewall-choice.ts";

/** A caller that does not get the answer believes that nothing is attached. */
export function setup(call: Call): number {
  const container = readContainer(call), context = contextOf(call, container);
  if (context.firewall === "firewalld") firewalld().requireFirewalld();
  const blocks = setUp(container, call.operand, call.surroundings, context);
  try {
    printLine(JSON.stringify(blocks));
    return 0;
  } catch (error) {
    printToStderr(`the answer cannot be written, so the container is detached again: ${errorText(error)}`);
    tearDown(container, call.operand, call.surroundings, context);
    return 1;
  }
}

export function teardown(call: Call): undefined {
  const container = readContainer(call);
  // podman is often stopped together with its container: the work is completed first.
  blockSignals([SIGTERM, SIGINT]);
  tearDown(container, call.operand, call.surroundings, contextOf(call, container));
}

function readContainer({ readInput }: Call): CheckedCall {
  return within("failed to load network options", () => readContainerCall(readInput()));
}

function firewalld() {
  return require("../firewall/firewalld.ts") as typeof import("../firewall/firewalld.ts");
}

function contextOf({ surroundings, hasFile }: Call, { isListed }: CheckedCall): DriverContext {
  const firewall = chooseFirewall(surroundings.firewallDriver);
  return {
    firewall,
    dnsPort: surroundings.dnsPort,
    // podman before 6 sends a map on stdin, and expects networks that do not say it to reach each other.
    isolatesByDefault: isListed || hasFile,
    pluginDirectories: surroundings.pluginDirectories,
    configDirectory: surroundings.configDirectory,
    stateDirectory: surroundings.isRootless ? undefined : `${surroundings.configDirectory}/firewall`,
    hasSystemd: !surroundings.isRootless && exists("/run/systemd/system"),
    daemon: {
      directory: `${surroundings.configDirectory}/aardvark-dns`,
      binary: surroundings.aardvarkBinary,
      port: surroundings.dnsPort,
      isRootless: surroundings.isRootless,
    },
  };
}
