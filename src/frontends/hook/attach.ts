/** `patchbay hook add`: attaches a container to all networks that it asks for, or to none. */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import type { VersionedResult } from "../../cni/result-versions.ts";
import { meansPlugin } from "../../cni/plugin-name.ts";
import { followedBy, takingBackFailed, throwJoined } from "../../contract/failures.ts";
import { programsAt, whatIsIdle } from "../../engine/operator/idle.ts";
import { onHost } from "../../engine/on-host.ts";
import { bringUpLoopback } from "../../ffi/netlink/route/loopback.ts";
import { takesCapability, takesNone, warnOfUntaken } from "../../runtime/capabilities.ts";
import { addUnlocked, deleteUnlocked } from "../../runtime/chain.ts";
import type { Network } from "../../runtime/conf/network.ts";
import { attachAllOrNone, deleteAllRecorded, deletionOf, placeOfRecorded } from "../../runtime/container-networks.ts";
import { leaveWhatMayWait } from "../../process/calls.ts";
import { loadNetwork } from "../../runtime/conf/load.ts";
import { withContainerLocked } from "../../runtime/lock.ts";
import { warn } from "../../process/warn.ts";
import { type AttachmentRequest, type Runtime, wrapped } from "../../runtime/plugin-call.ts";
import { attachmentsOfContainer, type RecordedAttachment } from "../../runtime/records.ts";
import { asConfigured } from "./detach.ts";
import type { RequestedPort } from "./ports.ts";
import type { HookRequest, RequestedNetwork } from "./request.ts";

export interface HookContainer {
  readonly id: string;
  readonly netnsPath: string;
}

export interface Attached {
  readonly network: Network;
  readonly request: AttachmentRequest;
  readonly result: VersionedResult | undefined;
}

/** Calls `accept` with what was attached. When that throws, nothing stays attached. */
export function attachAll(
  runtime: Runtime,
  container: HookContainer,
  asked: HookRequest,
  accept: (attached: readonly Attached[]) => void,
): void {
  const planned = plannedCalls(runtime, container, asked);
  leaveWhatMayWait(planned.flatMap(({ network }) => network.plugins), runtime.pluginPath);
  if (asked.annotatedPorts !== undefined) refusePortsInUse(asked.ports, asked.annotatedPorts);
  withContainerLocked(runtime, container.id, () => {
    const left = attachmentsOfContainer(runtime, container.id).filter((one) =>
      isLeft(one, container, asked.networks)
    );
    const deletions = left.map((one) => deletionOf(runtime, one, () => asConfigured(runtime, one)));
    throwJoined(deleteAllRecorded(runtime, deletions), "\n");
    attachAllOrNone(planned, {
      attach: ({ network, request }): Attached => ({ network, request, result: addNamed(runtime, network, request) }),
      takeBack: ({ network, request }) => deleteUnlocked(runtime, network, request),
      finish(attached) {
        if (!planned.some(({ network }) => hasLoopback(network))) bringUpLoopbackIn(container.netnsPath);
        for (const { network, request } of attached) {
          if (Object.hasOwn(request.capabilityArgs, "portMappings")) warnOfIdle(runtime, network, request);
        }
        accept(attached);
      },
      errorOf: (error, notTakenBack) => followedBy(error, takingBackFailed(notTakenBack)),
    });
  });
}

function addNamed(runtime: Runtime, network: Network, request: AttachmentRequest): VersionedResult | undefined {
  try {
    return addUnlocked(runtime, network, request);
  } catch (error) {
    throw wrapped(`${request.ifName} cannot be attached to network ${network.name}`, error);
  }
}

/** Nobody plans a hook, so it says itself what has no effect. */
function warnOfIdle({ pluginPath }: Runtime, { name }: Network, request: AttachmentRequest): void {
  try {
    for (const line of whatIsIdle({ network: name, ...request }, pluginPath)) warn(`network ${name}: ${line}`);
  } catch {
    // The attachment is there, and `inspect` says what cannot be read of it.
  }
}

/** Refuses what can be refused before anything is changed. */
function plannedCalls(
  runtime: Runtime,
  { id, netnsPath }: HookContainer,
  { networks, ports, capabilityArgs, cniArgs }: HookRequest,
) {
  const loaded = networks.map((requested) => ({
    requested,
    network: loadNetwork(runtime.configDirectory, requested.network),
  }));
  warnOfUntaken(loaded.map(({ network }) => network), capabilityArgs);
  const withPorts = loaded.find(({ network }) => takesCapability(network, "portMappings"));
  if (ports.length > 0 && withPorts === undefined) {
    throw takesNone(
      "ports",
      "portMappings",
      networks.map(({ network }) => network),
    );
  }
  return loaded.map((one) => {
    const { network, requested } = one, own = requested.capabilityArgs;
    const ignored = Object.keys(own).find((capability) => !takesCapability(network, capability));
    if (ignored !== undefined) throw takesNone(`${requested.source}: ${ignored}`, ignored, [network.name]);
    const portMappings = one === withPorts && ports.length > 0 ? { portMappings: ports } : {};
    const args = { ...capabilityArgs, ...portMappings, ...own };
    const request: AttachmentRequest = {
      containerId: id,
      netnsPath,
      ifName: requested.ifName,
      cniArgs,
      capabilityArgs: args,
    };
    return { network, request };
  });
}

/** The container's author is not trusted with what the host's own programs listen for. */
function refusePortsInUse(ports: readonly RequestedPort[], source: string): void {
  const taken = programsAt(ports);
  if (taken.length === 0) return;
  const next = "the hook's argument --ports-in-use lets annotations take such ports";
  throw new CniError(INVALID_CONFIG, `${source}: ${taken.join("; ")}`, next);
}

function hasLoopback({ plugins }: Network): boolean {
  return plugins.some(({ type }) => meansPlugin(type, "loopback"));
}

/** Does what the plugin loopback does. Nothing is recorded, because nothing has to be undone. */
function bringUpLoopbackIn(netnsPath: string): void {
  onHost(({ container }) => bringUpLoopback(container!.route), netnsPath);
}

/**
 * Whether an earlier container of this ID has left the attachment. In another namespace it is another container's, and on
 * a requested interface a second attachment; both are refused.
 */
function isLeft(
  attachment: RecordedAttachment,
  { id, netnsPath }: HookContainer,
  requested: readonly RequestedNetwork[],
): boolean {
  const { network, ifName } = attachment, place = placeOfRecorded(attachment, netnsPath);
  const next = `'hook del' detaches what container ${id} has`;
  if (place === "elsewhere") {
    const reason = `another container ${id} is attached to network ${network}, in ${attachment.netnsPath}`;
    throw new CniError(INVALID_CONFIG, reason, `ids must differ on a host, also between runtimes; ${next}`);
  }
  if (place === "here" && requested.some((one) => one.ifName === ifName)) {
    const reason = `${ifName} of container ${id} is attached to network ${network} already`;
    throw new CniError(INVALID_CONFIG, reason, `name another interface, as in NETWORK@eth7; ${next}`);
  }
  return place === "left";
}
