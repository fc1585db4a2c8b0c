/**
 * `teardown`: DEL with the network as it was at ADD. The result cache has it; where ADD did not come so far, the network
 * of today and the ledgers say what there is to undo.
 */
import { errorText } from "../../cni/error.ts";
import { checkContainerId, checkIfName, checkNetworkName } from "../../cni/invocation.ts";
import { attemptAll } from "../../contract/failures.ts";
import { startOfName } from "../../engine/ledger/paths.ts";
import { listAllLedgers } from "../../engine/ledger/ledger.ts";
import { LeftToCaller } from "../../ffi/calls.ts";
import { warn } from "../../ffi/warn.ts";
import { type AttachmentKey, readCache } from "../../runtime/cache.ts";
import { deleteNetwork } from "../../runtime/chain.ts";
import type { Network } from "../../runtime/conf/network.ts";
import { examined } from "../../runtime/examination.ts";
import type { AttachmentRequest, Runtime } from "../../runtime/plugin-call.ts";
import { deleteByLedgers, networkWithoutPlugins, recordedNetwork } from "../../runtime/recorded-network.ts";
import type { PluginCall } from "../wire/netavark.schema.ts";
import { attachmentRequest } from "./attachment-request.ts";
import { chosenNetwork, cniName, runtimeFor } from "./chosen-network.ts";

export function tearDown(netnsPath: string, call: PluginCall): void {
  const runtime = runtimeFor(call.network), key = keyOf(call);
  // The interface is one, whatever its network is called by now.
  const networks = new Set([key.network, ...ledgersOf(key).map(({ header }) => header.network)]);
  const deletions = [...networks].map((network) => deletionOf(runtime, { ...key, network }, netnsPath, call));
  attemptAll(deletions.map((deletion) => () => deleteAll(runtime, deletion)));
}

/**
 * Before ADD: the container has been started again in another namespace, and nobody has called `teardown`. That is so
 * after a crash of podman, or of the machine.
 */
export function takeBackFormer(runtime: Runtime, key: AttachmentKey, netnsPath: string, call: PluginCall): void {
  const cached = readCache(runtime.cacheDirectory, key);
  const paths = ledgersOf(key).filter(({ header }) => header.network === key.network).map(({ header }) =>
    header.netnsPath
  );
  if (cached.state === "present") paths.push(cached.record.netnsPath);
  if (paths.every((path) => path === netnsPath)) return;
  try {
    deleteAll(runtime, deletionOf(runtime, key, paths.find((path) => path !== netnsPath)!, call));
  } catch (error) {
    if (error instanceof LeftToCaller) throw error;
    warn(`what is left of the container's former attachment stays until teardown: ${errorText(error)}`);
  }
}

/** Throws for names that ADD would refuse: the names of files are made of them. */
export function keyOf({ container_id, network, network_options }: PluginCall): AttachmentKey {
  const key = { network: cniName(network), containerId: container_id, ifName: network_options.interface_name };
  checkNetworkName(key.network);
  checkContainerId(key.containerId);
  checkIfName(key.ifName);
  return key;
}

function ledgersOf({ containerId, ifName }: AttachmentKey) {
  return listAllLedgers(startOfName({ containerId, ifName })).filter(({ header }) =>
    header.containerId === containerId && header.ifName === ifName
  );
}

interface Deletion {
  readonly network: Network;
  readonly request: AttachmentRequest;
}

/** A resident leaves the call to its caller here, before anything is changed. */
function deletionOf(runtime: Runtime, key: AttachmentKey, netnsPath: string, call: PluginCall): Deletion {
  const cached = readCache(runtime.cacheDirectory, key), recorded = recordedNetwork(runtime, key);
  const bare = { ...key, netnsPath, cniArgs: [], capabilityArgs: {} };
  if (cached.state === "present" && recorded!.plugins.length > 0) {
    const { cniArgs = [], capabilityArgs = {} } = cached.record;
    return { network: examined(recorded!, runtime), request: { ...bare, cniArgs, capabilityArgs } };
  }
  const isToday = key.network === cniName(call.network);
  const today = isToday ? deletionToday(netnsPath, call, recorded !== undefined) : undefined;
  return today ?? { network: networkWithoutPlugins(key.network), request: bare };
}

function deleteAll(runtime: Runtime, { network, request }: Deletion): void {
  attemptAll([
    () => deleteNetwork(runtime, network, request),
    () => deleteByLedgers(runtime, { ...request, network: network.name }),
  ]);
}

/** Undefined when it cannot be read any more: then there are the ledgers. */
function deletionToday(netnsPath: string, call: PluginCall, isRecorded: boolean): Deletion | undefined {
  try {
    const chosen = chosenNetwork(call.network);
    return { network: chosen.network, request: attachmentRequest(netnsPath, call, chosen) };
  } catch (error) {
    if (error instanceof LeftToCaller) throw error;
    const rest = isRecorded ? "what is recorded of it is undone" : "nothing is recorded of this container";
    warn(`the network ${call.network.name} cannot be read any more, so ${rest}: ${errorText(error)}`);
    return undefined;
  }
}
