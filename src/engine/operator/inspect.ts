/** Compares attachments with the kernel: `patchbay inspect`. */
import { idlePorts } from "./idle.ts";
import { errorText, undefinedOnError } from "../../cni/error.ts";
import { meansPlugin } from "../../cni/plugin-name.ts";
import { isNetnsGone, isSameNetns } from "../../ffi/netns.ts";
import { withOwnPatience } from "../../process/patience.ts";
import { onHost } from "../on-host.ts";
import { isOtherNamespace, type Opened, type OpenHost, openHost, SameNetnsError } from "../open-host.ts";
import type { Host } from "../../contract/host.ts";
import { NEXT_STEP } from "../ledger/newer.ts";
import { HostView, type Whereabouts, whereabouts } from "../ledger/whereabouts.ts";
import {
  answeredEnds,
  gistOf,
  isConfirmed,
  type KnownAttachment,
  type KnownPart,
  type KnownResource,
  partsOf,
} from "./known-attachment.ts";
import type { ResourceKind } from "../../contract/resource.ts";
import type { AttachmentState, Gist, InspectedAttachment, InspectedResource } from "../../contract/summaries.ts";
import { inScene, traced } from "../../contract/trace.ts";

/** One `view` serves many attachments. */
export function inspect(
  attachment: KnownAttachment,
  pluginPath: string,
  view: HostView = new HostView(),
): InspectedAttachment {
  return withAttachment(
    attachment,
    pluginPath,
    view,
    (_opened, parts) =>
      parts.map(({ plugin, madeBy, host, resources }) => ({
        plugin,
        madeBy,
        resources: inAttachmentScene(
          "inspect",
          attachment,
          plugin,
          () => resources.map((resource) => inspectResource(resource, host, view)),
        ),
      })),
  );
}

/** In the order in which the network names its plugins. Plugins that it does not name come last. */
export function inOrderOfChain<Part extends { plugin: string }>(
  parts: readonly Part[],
  { cached }: KnownAttachment,
): Part[] {
  const chain = cached?.plugins ?? [];
  const placeOf = ({ plugin }: Part) => {
    const isOthers = (type: string) => type !== plugin && parts.some((part) => part.plugin === type);
    const place = chain.findIndex(({ type }) => meansPlugin(type, plugin) && !isOthers(type));
    return place < 0 ? chain.length : place;
  };
  return parts.toSorted((one, other) => placeOf(one) - placeOf(other));
}

/**
 * Whether the container's namespace is gone, by the rule of ledger/whereabouts.ts. False when that cannot be determined.
 * One `view` serves many attachments.
 */
export function isNamespaceGone(attachment: KnownAttachment, view: HostView = new HostView()): boolean {
  return whereaboutsOf(attachment, view) === "gone";
}

/** `unknown`, too, when it cannot be determined. */
export function whereaboutsOf(attachment: KnownAttachment, view: HostView): Whereabouts {
  try {
    return withWhereabouts(attachment, view, (where) => where);
  } catch {
    return "unknown";
  }
}

/**
 * What the attachment is to a container in `netnsPath`: of a container that is gone, of this one, or of one that lives in
 * another namespace. Unlike for `isNamespaceGone`, what nothing proves counts as left: a path below /proc may lead to
 * another container after a reboot.
 */
export function placeOfAttachment(attachment: KnownAttachment, netnsPath: string): "left" | "here" | "elsewhere" {
  return withWhereabouts(attachment, new HostView(), (where, found) => {
    if (where !== "in place" && where !== "elsewhere") return "left";
    const isSame = (opened: Opened) =>
      where === "in place"
        ? isSameNetns(opened.container!.netnsFd, found!.container!.netnsFd)
        : attachment.ledgers.some(({ adds }) => adds.some(({ header }) => isNamespace(opened, header.netns)));
    return onHost(isSame, netnsPath, { allowOwn: true }) ? "here" : "elsewhere";
  });
}

function withWhereabouts<T>(
  attachment: KnownAttachment,
  view: HostView,
  work: (where: Whereabouts, found: OpenHost | undefined) => T,
): T {
  const { netnsPath, ledgers: records } = attachment;
  const found = netnsPath === "" ? undefined : openAttachment(attachment);
  try {
    const traces = {
      records,
      found,
      isConfirmed: found !== undefined && isConfirmed(attachment, found),
      hostEnds: answeredEnds(attachment),
      netnsPath,
    };
    return work(whereabouts(traces, view), found);
  } finally {
    found?.close();
  }
}

function isNamespace({ container }: Opened, cookie: string | undefined): boolean {
  return cookie !== undefined && container?.cookie === cookie;
}

/**
 * Runs `work`, which says what of the plugins is right, with the attachment's namespaces open. Returns state `gone` or
 * `elsewhere` when the path does not lead to the container, or when another network namespace of the host is the one to
 * judge.
 */
export function withAttachment<Resource extends { state: string }>(
  attachment: KnownAttachment,
  pluginPath: string,
  view: HostView,
  work: (opened: Opened, parts: KnownPart[]) => AttachmentState<Resource>["plugins"],
  isRight = ({ state }: Resource) => state === "ok",
): AttachmentState<Resource> & Gist {
  const { network, containerId, ifName, netnsPath, names } = attachment;
  const head = { network, containerId, ifName, netnsPath, names };
  return withWhereabouts(attachment, view, (where, found) => {
    if (found !== undefined && (where === "in place" || where === "unknown")) {
      const parts = partsOf(attachment, found, pluginPath);
      if (!parts.some(({ netns }) => isOtherNamespace(found, netns))) {
        const gist = gistOf(attachment, parts), plugins = withOwnPatience(() => work(found, parts));
        const state = plugins.every(({ resources }) => resources.every(isRight)) ? "ok" : "differs";
        return { ...head, ...gist, state, plugins: inOrderOfChain(plugins, attachment) };
      }
    }
    return { ...head, ...gistOf(attachment), state: where === "gone" ? "gone" : "elsewhere", plugins: [] };
  });
}

/**
 * Another program may have made the attachment again under another path. Uses the path of the cached result when that
 * result's link is there.
 */
function openAttachment(attachment: KnownAttachment): OpenHost | undefined {
  const { netnsPath, cached } = attachment;
  const other = cached === undefined || cached.netnsPath === netnsPath ? undefined : openIfThere(cached.netnsPath);
  if (other === undefined) return openIfThere(netnsPath);
  if (isConfirmed(attachment, other)) return other;
  other.close();
  return openIfThere(netnsPath);
}

function openIfThere(netnsPath: string): OpenHost | undefined {
  try {
    return openHost(netnsPath);
  } catch (error) {
    // The path of a namespace that is gone may now lead to the host's own.
    if (error instanceof SameNetnsError || isNetnsGone(error)) return undefined;
    throw error;
  }
}

export function inAttachmentScene<T>(verb: string, attachment: KnownAttachment, plugin: string, work: () => T): T {
  const { network, containerId, ifName } = attachment;
  return inScene({ verb, plugin, network, containerId, ifName }, work);
}

export function inspectResource(
  { name, kind, spec, isRestated }: KnownResource,
  host: Host,
  view?: HostView,
): InspectedResource {
  if (kind === undefined) return unknown(name, name, NEXT_STEP);
  const what = kind.describe(spec);
  try {
    const own = [
      ...traced("verify", kind, spec, () => kind.verify(spec, host, isRestated)),
      ...kind.inTheWay?.(spec, host) ?? [],
      ...idlePorts(kind, spec, host).here,
    ];
    const others = own.length > 0 ? [] : stoppedByOthers(kind, spec, host, view);
    if (others.length > 0) return { kind: name, what, state: "differs", differences: others, isOfOthers: true };
    return { kind: name, what, state: own.length === 0 ? "ok" : "differs", differences: own };
  } catch (error) {
    return unknown(name, what, errorText(error));
  }
}

/** It only adds to what is verified, so what fails of it is nothing that differs. */
function stoppedByOthers(
  kind: ResourceKind<unknown>,
  spec: unknown,
  host: Host,
  view: HostView | undefined,
): string[] {
  return (view && undefinedOnError(() => kind.stoppedByOthers?.(spec, host, view))) ?? [];
}

function unknown(kind: string, what: string, reason: string): InspectedResource {
  return { kind, what, state: "unknown", differences: [reason] };
}
