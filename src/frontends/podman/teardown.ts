/**
 * `teardown`: DEL with the network as it was at ADD, which the result cache has. When ADD did not get that far, the current
 * network and the ledgers say what there is to undo.
 */
import { errorText } from "../../cni/error.ts";
import { checkContainerId, checkIfName, checkNetworkName } from "../../cni/invocation.ts";
import { attemptAll } from "../../contract/failures.ts";
import type { Owner } from "../../contract/owner.ts";
import { warn } from "../../process/warn.ts";
import { deleteRecorded, type Deletion, deletionOf, placeOfRecorded } from "../../runtime/container-networks.ts";
import type { Runtime } from "../../runtime/plugin-call.ts";
import { attachmentsOfContainer, networkWithoutPlugins, type RecordedAttachment } from "../../runtime/records.ts";
import type { PluginCall } from "../../interop/podman-documents/netavark.schema.ts";
import { attachmentRequest } from "./attachment-request.ts";
import { chosenNetwork, cniName, runtimeFor } from "./chosen-network.ts";

export function tearDown(netnsPath: string, call: PluginCall): void {
  const runtime = runtimeFor(call.network), key = ownerOfCall(call), recorded = recordedOf(runtime, key);
  const isRecorded = recorded.some(({ network }) => network === key.network);
  // There is one interface of the name, whatever its network is called now.
  const deletions = recorded.map((one) => deletionIn(runtime, { ...one, netnsPath }, call));
  if (!isRecorded) deletions.push(deletionOfUnrecorded(runtime, key, netnsPath, call));
  attemptAll(deletions.map((deletion) => () => deleteRecorded(runtime, deletion)));
}

/**
 * Called before ADD: after a crash of podman or of the host, a container is started again in another namespace without a
 * `teardown`.
 */
export function takeBackFormer(runtime: Runtime, key: Owner, netnsPath: string, call: PluginCall): void {
  try {
    for (const former of recordedOf(runtime, key).filter(({ network }) => network === key.network)) {
      if (placeOfRecorded(former, netnsPath) === "here") continue;
      deleteRecorded(runtime, deletionIn(runtime, former, call));
    }
  } catch (error) {
    warn(`what is left of the container's former attachment stays until teardown: ${errorText(error)}`);
  }
}

/** Throws for names that ADD would refuse, because names of files contain them. */
export function ownerOfCall({ container_id, network, network_options }: PluginCall): Owner {
  const key = { network: cniName(network), containerId: container_id, ifName: network_options.interface_name };
  checkNetworkName(key.network);
  checkContainerId(key.containerId);
  checkIfName(key.ifName);
  return key;
}

function recordedOf(runtime: Runtime, { containerId, ifName }: Owner): RecordedAttachment[] {
  return attachmentsOfContainer(runtime, containerId).filter((one) => one.ifName === ifName);
}

function deletionIn(runtime: Runtime, attachment: RecordedAttachment, call: PluginCall): Deletion {
  return deletionOf(runtime, attachment, () => {
    if (attachment.network === cniName(call.network)) return asConfigured(runtime, attachment.netnsPath, call);
    return { network: networkWithoutPlugins(attachment.network), request: attachment };
  });
}

/** Neither a ledger nor the result cache has it, but plugins of others may. */
function deletionOfUnrecorded(runtime: Runtime, key: Owner, netnsPath: string, call: PluginCall): Deletion {
  try {
    return asConfigured(runtime, netnsPath, call);
  } catch (error) {
    warn(`network ${key.network} cannot be read, and nothing is recorded of this container: ${errorText(error)}`);
    const request = { ...key, netnsPath, cniArgs: [], capabilityArgs: {} };
    return { network: networkWithoutPlugins(key.network), request };
  }
}

function asConfigured(runtime: Runtime, netnsPath: string, call: PluginCall): Deletion {
  const chosen = chosenNetwork(call.network, runtime);
  return { network: chosen.network, request: attachmentRequest(netnsPath, call, chosen) };
}
