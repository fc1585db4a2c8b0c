/**
 * The runtime's operations as data: what a program that calls Patchbay as a library asks for, and what it gets. The
 * library carries them out in its own process, or hands them to a resident (cli/handed-over.ts).
 */
import { CniError, INTERNAL } from "../cni/error.ts";
import type { Result } from "../cni/result.ts";
import { newestResult, resultDocument } from "../cni/result-versions.ts";
import { CURRENT_VERSION } from "../cni/versions.ts";
import type { Pool } from "../contract/plugin.ts";
import { inspect } from "../engine/operator/inspect.ts";
import { listAttachments } from "../engine/operator/known-attachment.ts";
import { isCallerGone } from "../ffi/calls.ts";
import { withScratchNetns } from "../ffi/netns.ts";
import { listCache } from "./cache.ts";
import { warnOfUntaken } from "./capabilities.ts";
import { cachedAttachments } from "./cached-attachments.ts";
import { addNetwork, checkNetwork, deleteNetwork, networkStatus } from "./chain.ts";
import type { Network } from "./conf/network.ts";
import { examined } from "./examination.ts";
import { type AttachmentName, collectGarbage, type Keep } from "./gc.ts";
import { poolsOfNetwork, summarizeNetworks } from "./network-summary.ts";
import { warnOfOverlaps } from "./overlaps.ts";
import { type PlannedPlugin, planNetwork } from "./plan.ts";
import type { AttachmentRequest, Runtime } from "./plugin-call.ts";
import { deleteByLedgers } from "./recorded-network.ts";

interface OnNetwork {
  network: Network;
}

interface OnAttachment extends OnNetwork {
  attachment: AttachmentRequest;
}

/** What each operation is about. */
export interface Subjects {
  add: OnAttachment;
  check: OnAttachment;
  /** `isRecorded`: the network is not configured any more, and is what the records say. */
  del: OnAttachment & { isRecorded: boolean };
  gc: OnNetwork & { keep: Keep };
  status: OnNetwork;
  /** Without a path of a namespace, an empty one is assumed. */
  plan: OnAttachment;
  inspect: { network?: string; containerId?: string };
  networks: { directory: string };
}

export interface Outcomes {
  add: Result;
  check: undefined;
  del: undefined;
  gc: AttachmentName[];
  status: Pool[];
  plan: PlannedPlugin[];
  inspect: ReturnType<typeof inspect>[];
  networks: ReturnType<typeof summarizeNetworks>;
}

export type OperationName = keyof Subjects;

type Perform<Name extends OperationName> = (runtime: Runtime, subject: Subjects[Name]) => Outcomes[Name];

const operations: { [Name in OperationName]: Perform<Name> } = {
  add(runtime, { network, attachment }) {
    warnOfUntaken([network], attachment.capabilityArgs);
    const result = addNetwork(runtime, network, attachment);
    if (isCallerGone()) {
      // Nobody knows of the attachment.
      deleteNetwork(runtime, network, attachment);
      throw new CniError(INTERNAL, "the caller is gone");
    }
    if (result === undefined) return { cniVersion: CURRENT_VERSION };
    return resultDocument({ family: "1.0", result: newestResult(result) }) as unknown as Result;
  },
  check(runtime, { network, attachment }) {
    checkNetwork(runtime, network, attachment);
  },
  del(runtime, { network, attachment, isRecorded }) {
    deleteNetwork(runtime, network, attachment);
    if (isRecorded) deleteByLedgers(runtime, { network: network.name, ...attachment });
  },
  gc(runtime, { network, keep }) {
    const deleted: AttachmentName[] = [];
    collectGarbage(runtime, network, keep, (stale) => {
      for (const { containerId, ifName } of stale) deleted.push({ containerId, ifName });
    });
    return deleted;
  },
  status(runtime, { network }) {
    networkStatus(runtime, network);
    return poolsOfNetwork(network);
  },
  plan(runtime, { network, attachment }) {
    warnOfOverlaps(network);
    warnOfUntaken([network], attachment.capabilityArgs);
    const plan = (netnsPath: string) => planNetwork(runtime, network, { ...attachment, netnsPath });
    return attachment.netnsPath === "" ? withScratchNetns(plan) : plan(attachment.netnsPath);
  },
  inspect({ cacheDirectory, pluginPath }, { network: wanted, containerId }) {
    return listAttachments(cachedAttachments(listCache(cacheDirectory, containerId)), containerId)
      .filter(({ network }) => (wanted ?? network) === network)
      .map((attachment) => inspect(attachment, pluginPath));
  },
  networks({ pluginPath }, { directory }) {
    return summarizeNetworks(directory, pluginPath);
  },
};

export function perform<Name extends OperationName>(
  name: Name,
  runtime: Runtime,
  subject: Subjects[Name],
): Outcomes[Name] {
  if ("network" in subject && typeof subject.network === "object") examined(subject.network, runtime);
  return operations[name](runtime, subject);
}
