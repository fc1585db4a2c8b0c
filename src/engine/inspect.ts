/** Attachments beside what the kernel has now: `patchbay inspect`. */
import { errorText } from "../cni/error.ts";
import { isNetnsGone } from "../ffi/netns.ts";
import { type Host, isAnothers, openHost, SameNetnsError } from "./host.ts";
import type { LedgerRecord } from "./ledger.ts";
import { type RecordedAttachment, type RecordedResource, resourcesOf } from "./recorded.ts";
import type { Owner } from "./resource.ts";
import { inScene, traced } from "./trace.ts";

export interface InspectedResource {
  kind: string;
  /** One line a person reads. */
  what: string;
  /** `unknown`: it could not be looked at. */
  state: "ok" | "differs" | "unknown";
  differences: string[];
}

export interface InspectedAttachment<Resource = InspectedResource> extends Owner {
  netnsPath: string;
  /** `gone`: the container's namespace is no more, and nothing was looked at. */
  state: "ok" | "differs" | "gone";
  plugins: { plugin: string; resources: Resource[] }[];
}

export function inspect(attachment: RecordedAttachment, pluginPath: string): InspectedAttachment {
  return withAttachment(attachment, (host) => {
    let state: "ok" | "differs" = "ok";
    const plugins = attachment.ledgers.map((record) => ({
      plugin: record.header.plugin,
      resources: inLedgerScene("inspect", record, () =>
        resourcesOf(record, pluginPath).map((resource) => {
          const inspected = look(resource, host);
          if (inspected.state !== "ok") state = "differs";
          return inspected;
        })),
    }));
    return { ...headOf(attachment), state, plugins };
  });
}

/** Runs `work` with the attachment's namespaces open; where the container's is gone, only says what was there. */
export function withAttachment<Resource>(
  attachment: RecordedAttachment,
  work: (host: Host) => InspectedAttachment<Resource>,
): InspectedAttachment<Resource> {
  const gone: InspectedAttachment<Resource> = { ...headOf(attachment), state: "gone", plugins: [] };
  const host = openIfThere(attachment.netnsPath);
  if (host === undefined) return gone;
  try {
    return attachment.ledgers.some(({ header }) => isAnothers(host, header.netns)) ? gone : work(host);
  } finally {
    host.close();
  }
}

function openIfThere(netnsPath: string): Host | undefined {
  try {
    return openHost(netnsPath);
  } catch (error) {
    // The path of what is gone may have come to name the host's own namespace.
    if (error instanceof SameNetnsError || isNetnsGone(error)) return undefined;
    throw error;
  }
}

export function headOf({ network, containerId, ifName, netnsPath }: RecordedAttachment) {
  return { network, containerId, ifName, netnsPath };
}

export function inLedgerScene<T>(verb: string, { header }: LedgerRecord, work: () => T): T {
  const { plugin, network, containerId, ifName } = header;
  return inScene({ verb, plugin, network, containerId, ifName }, work);
}

export function look({ name, kind, spec }: RecordedResource, host: Host): InspectedResource {
  if (kind === undefined) return unknown(name, name, "this version of patchbay does not know it");
  const what = kind.describe(spec);
  try {
    const differences = traced("verify", kind, spec, () => kind.verify(spec, host));
    return { kind: name, what, state: differences.length === 0 ? "ok" : "differs", differences };
  } catch (error) {
    return unknown(name, what, errorText(error));
  }
}

function unknown(kind: string, what: string, reason: string): InspectedResource {
  return { kind, what, state: "unknown", differences: [reason] };
}
