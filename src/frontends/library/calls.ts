/**
 * The library's functions. They are synchronous, as the engine is: an operation takes milliseconds, and while the thread
 * is in a container's namespace nothing else may run on it. thread.ts is for programs that must not wait.
 */
import { CniError, errorText, INVALID_CONFIG } from "../../cni/error.ts";
import type { Result } from "../../cni/result.ts";
import { newestResult, resultDocument } from "../../cni/result-versions.ts";
import { CURRENT_VERSION } from "../../cni/versions.ts";
import { HostView } from "../../engine/ledger/whereabouts.ts";
import { inspect } from "../../engine/operator/inspect.ts";
import { withScratchNetns } from "../../ffi/netns.ts";
import { whileWarning } from "../../process/warn.ts";
import { warnOfUntaken } from "../../runtime/capabilities.ts";
import { addNetwork, checkNetwork, deleteNetwork, networkStatus } from "../../runtime/chain.ts";
import { loadedOrRecorded, loadNetwork } from "../../runtime/conf/load.ts";
import { parseNetwork } from "../../runtime/conf/network.ts";
import { deleteRecorded } from "../../runtime/container-networks.ts";
import { collectGarbage, type Keep, unconfiguredNetwork } from "../../runtime/gc.ts";
import { DEFAULT_CACHE_DIRECTORY, DEFAULT_CONFIG_DIRECTORY, isNamedButMissing } from "../../runtime/paths.ts";
import { poolsOfNetwork, summarizeNetworks } from "../../runtime/network-summary.ts";
import { warnOfOverlaps } from "../../runtime/overlaps.ts";
import { planNetwork } from "../../runtime/plan.ts";
import type { AttachmentRequest, Runtime } from "../../runtime/plugin-call.ts";
import { knownAttachments, recordedNetwork } from "../../runtime/records.ts";
import { ArgumentError } from "./argument-error.ts";
import type {
  Attachment,
  AttachmentName,
  DetachedAttachment,
  InspectedAttachment,
  Network,
  NetworkConfig,
  NetworkFile,
  Options,
  PlannedPlugin,
  Pool,
} from "./documents.ts";
import { type EventOptions, eventsOf, type NetworkEvent } from "./events.ts";
import { anyRequest, checkedOptions, knownKeys, requestFrom, text } from "./given.ts";
import { asCniError, inProcess } from "./in-process.ts";

/** A network's name in the configuration directory, its configuration, or what `network` returned. */
export type NetworkGiven = string | NetworkConfig | Network;

/** What GC keeps: the attachments named, or all whose namespace still exists. */
export type ValidAttachments = { readonly valid: readonly AttachmentName[] } | { readonly live: true };

export function open(options: Options = {}): Patchbay {
  return new Patchbay(checkedOptions(options));
}

/** Every function throws `CniError`; wrong arguments are an `ArgumentError`, which is one, too. */
export class Patchbay {
  readonly #onWarning: Options["onWarning"];
  readonly #runtime: Runtime;

  /** @internal */
  constructor(options: Options) {
    this.#onWarning = options.onWarning;
    this.#runtime = {
      configDirectory: options.configDirectory ?? DEFAULT_CONFIG_DIRECTORY,
      pluginPath: options.pluginPath ?? "",
      cacheDirectory: options.cacheDirectory ?? DEFAULT_CACHE_DIRECTORY,
    };
  }

  /** All files of the configuration directory, and what would keep containers from being attached. Throws when it is named and missing. */
  networks(): NetworkFile[] {
    return this.#prepared(() => this.#runtime, ({ configDirectory }) => {
      if (isNamedButMissing(configDirectory)) {
        throw new CniError(INVALID_CONFIG, `no networks in ${configDirectory}`, "it does not exist");
      }
      return summarizeNetworks(this.#runtime)
        .map((network) => ({ ...network, problems: network.problems.map(errorText) }));
    });
  }

  /** Reads a network once, for later calls. */
  network(network: NetworkGiven): Network {
    return this.#typed(() => this.#networkOf(network));
  }

  /** Attaches a container, and returns the result as of CNI 1.1. When it throws, nothing is attached. */
  add(network: NetworkGiven, attachment: Attachment): Result {
    return this.#on(network, attachment, (chosen, request) => {
      warnOfUntaken([chosen], request.capabilityArgs);
      const result = addNetwork(this.#runtime, chosen, request);
      if (result === undefined) return { cniVersion: CURRENT_VERSION };
      return resultDocument({ family: "1.0", result: newestResult(result) }) as unknown as Result;
    });
  }

  /** Throws when the attachment is not as it was made. */
  check(network: NetworkGiven, attachment: Attachment): void {
    this.#on(network, attachment, (chosen, request) => checkNetwork(this.#runtime, chosen, request));
  }

  /** Deletes an attachment. Its namespace and the network's file may be gone, and so may the attachment. */
  del(network: NetworkGiven, attachment: DetachedAttachment): void {
    this.#prepared(() => {
      const request = requestFrom(attachment, false);
      // Only a network that is given by its name can be unknown.
      const recorded = () => recordedNetwork(this.#runtime, { network: network as string, ...request });
      return { ...loadedOrRecorded(() => this.#networkOf(network), recorded), request };
    }, ({ network, isConfigured, request }) => {
      if (isConfigured) deleteNetwork(this.#runtime, network, request);
      else deleteRecorded(this.#runtime, { network, request });
    });
  }

  /** Deletes the attachments that are not to be kept, with what no record names, and returns which. */
  gc(network: NetworkGiven, kept: ValidAttachments): AttachmentName[] {
    return this.#prepared(() => {
      const keep = keepOf(kept), recorded = () => unconfiguredNetwork(this.#runtime, network as string);
      return { ...loadedOrRecorded(() => this.#networkOf(network), recorded), keep };
    }, ({ network, keep }) => {
      const deleted: AttachmentName[] = [];
      collectGarbage(this.#runtime, network, keep, (stale) => {
        for (const { containerId, ifName } of stale) deleted.push({ containerId, ifName });
      });
      return deleted;
    });
  }

  /** Throws when nothing can be attached now; returns how full the pools of addresses are. */
  status(network: NetworkGiven): Pool[] {
    return this.#prepared(() => this.#networkOf(network), (chosen) => {
      networkStatus(this.#runtime, chosen);
      return poolsOfNetwork(chosen);
    });
  }

  /** What `add` would make, and why it would fail. Nothing is changed. */
  plan(network: NetworkGiven, attachment?: Attachment): PlannedPlugin[] {
    return this.#prepared(() => ({
      request: attachment === undefined ? anyRequest() : requestFrom(attachment, true),
      chosen: this.#networkOf(network),
    }), ({ chosen, request }) => {
      warnOfOverlaps(chosen);
      warnOfUntaken([chosen], request.capabilityArgs);
      const plan = (netnsPath: string) =>
        planNetwork(this.#runtime, chosen, { ...request, netnsPath })
          .map((plugin) => ({ ...plugin, obstacles: plugin.obstacles.map(errorText) }));
      return attachment === undefined ? withScratchNetns(plan) : plan(request.netnsPath);
    });
  }

  /** Compares attachments with the kernel: all, those of a network, those of a container. */
  inspect(wanted: { readonly network?: string; readonly containerId?: string } = {}): InspectedAttachment[] {
    return this.#prepared(() => {
      const given = knownKeys("wanted", wanted, ["network", "containerId"]);
      for (const [key, value] of Object.entries(given)) if (value !== undefined) text(`wanted.${key}`, value);
      return wanted;
    }, ({ network, containerId }) => {
      const view = new HostView();
      return knownAttachments(this.#runtime, containerId)
        .filter((attachment) => (network ?? attachment.network) === attachment.network)
        .map((attachment) => inspect(attachment, this.#runtime.pluginPath, view));
    });
  }

  /** Attachments made and deleted from now on, by whichever program. */
  events(options: EventOptions = {}): AsyncIterableIterator<NetworkEvent> {
    return eventsOf(this.#runtime.cacheDirectory, options);
  }

  #on<Value>(
    network: unknown,
    attachment: unknown,
    work: (network: Network, request: AttachmentRequest) => Value,
  ): Value {
    return this.#prepared(
      () => ({ request: requestFrom(attachment, true), chosen: this.#networkOf(network) }),
      ({ chosen, request }) => work(chosen, request),
    );
  }

  #networkOf(given: unknown): Network {
    if (typeof given === "string") return loadNetwork(this.#runtime.configDirectory, text("network", given));
    if (typeof given !== "object" || given === null) {
      throw new ArgumentError("network", given, "must be a name, a configuration, or what network() answered");
    }
    return "source" in given ? given as Network : parseNetwork(JSON.stringify(given));
  }

  /** `prepare` reads and judges what was given; `work` needs the privileges. */
  #prepared<Given, Value>(prepare: () => Given, work: (given: Given) => Value): Value {
    return this.#typed(() => {
      const given = prepare();
      return inProcess(() => work(given));
    });
  }

  /** Turns other errors into a CniError, and passes warnings to the program. */
  #typed<Value>(work: () => Value): Value {
    const warnings: string[] = [];
    try {
      return whileWarning((message) => void warnings.push(message), work);
    } catch (error) {
      throw asCniError(error);
    } finally {
      this.#report(warnings);
    }
  }

  /** Runs after the call, so that the listener may call again. What it throws must not replace the outcome of the call. */
  #report(warnings: readonly string[]): void {
    const listen = this.#onWarning ?? ((message) => console.error(`patchbay: ${message}`));
    for (const warning of warnings) {
      try {
        listen(warning);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}

function keepOf(kept: unknown): Keep {
  const { valid, live } = knownKeys("kept", kept, ["valid", "live"]);
  if ((valid === undefined) === (live === undefined)) {
    throw new ArgumentError("kept", kept, "must have one of valid and live");
  }
  if (live !== undefined) {
    if (live !== true) throw new ArgumentError("kept.live", live, "must be true");
    return "live";
  }
  if (!Array.isArray(valid)) throw new ArgumentError("kept.valid", valid, "must be a list of attachments");
  return {
    valid: valid.map((one, index) => {
      const path = `kept.valid[${index}]`, { containerId, ifName } = knownKeys(path, one, ["containerId", "ifName"]);
      return { containerId: text(`${path}.containerId`, containerId), ifName: text(`${path}.ifName`, ifName) };
    }),
  };
}
