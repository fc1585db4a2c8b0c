/**
 * The library's functions. They are synchronous, as the engine is: an operation takes milliseconds, and while the thread
 * is in a container's namespace nothing else may run on it. thread.ts is for programs that must not wait.
 */
import { CniError } from "../cni/error.ts";
import type { Result } from "../cni/result.ts";
import { whileWarning } from "../ffi/warn.ts";
import type { OperationAnswer } from "../runtime/cli/handed-over.ts";
import { DEFAULT_CACHE_DIRECTORY } from "../runtime/cache.ts";
import { loadNetwork, UnknownNetworkError } from "../runtime/conf/load.ts";
import { parseNetwork } from "../runtime/conf/network.ts";
import { type Keep, unconfiguredNetwork } from "../runtime/gc.ts";
import type { OperationName, Outcomes, Subjects } from "../runtime/operation.ts";
import type { Runtime } from "../runtime/plugin-call.ts";
import { recordedNetwork } from "../runtime/recorded-network.ts";
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
import { asCniError, inProcess, ownEnvironment } from "./in-process.ts";
import { throughResident } from "./resident.ts";

/** A network's name in the configuration directory, its configuration, or what `network` answered. */
export type NetworkGiven = string | NetworkConfig | Network;

/** What GC keeps: the attachments named, or all whose namespace still exists. */
export type Kept = { readonly valid: readonly AttachmentName[] } | { readonly live: true };

export function open(options: Options = {}): Patchbay {
  return new Patchbay(checkedOptions(options));
}

/** Every function throws `CniError`; wrong arguments are an `ArgumentError`, which is one, too. */
export class Patchbay {
  readonly #options: Options;
  readonly #runtime: Runtime;
  readonly #directory: string;

  /** @internal */
  constructor(options: Options) {
    this.#options = options;
    this.#directory = options.configDirectory ?? "/etc/cni/net.d";
    this.#runtime = {
      pluginPath: options.pluginPath ?? "",
      cacheDirectory: options.cacheDirectory ?? DEFAULT_CACHE_DIRECTORY,
    };
  }

  /** All files of the configuration directory, and what would keep containers from being attached. */
  networks(): NetworkFile[] {
    return this.#run("networks", () => ({ directory: this.#directory }));
  }

  /** Reads a network once, for calls that follow. */
  network(network: NetworkGiven): Network {
    return this.#typed(() => this.#networkOf(network));
  }

  /** Attaches a container, and answers the result as of CNI 1.1. When it throws, nothing is attached. */
  add(network: NetworkGiven, attachment: Attachment): Result {
    return this.#run("add", () => this.#onAttachment(network, attachment));
  }

  /** Throws when the attachment is not as it was made. */
  check(network: NetworkGiven, attachment: Attachment): void {
    this.#run("check", () => this.#onAttachment(network, attachment));
  }

  /** Deletes an attachment. Its namespace and the network's file may be gone, and so may the attachment. */
  del(network: NetworkGiven, attachment: DetachedAttachment): void {
    this.#run("del", () => {
      const request = requestFrom(attachment, false);
      const recorded = (name: string) => recordedNetwork(this.#runtime, { network: name, ...request });
      return { ...this.#networkOrRecorded(network, recorded), attachment: request };
    });
  }

  /** Deletes the attachments that are not to be kept, with what no record names, and answers which. */
  gc(network: NetworkGiven, kept: Kept): AttachmentName[] {
    return this.#run("gc", () => {
      const keep = keepOf(kept), recorded = (name: string) => unconfiguredNetwork(this.#runtime, name);
      return { ...this.#networkOrRecorded(network, recorded), keep };
    });
  }

  /** Throws when nothing can be attached now; answers how full the pools of addresses are. */
  status(network: NetworkGiven): Pool[] {
    return this.#run("status", () => ({ network: this.#networkOf(network) }));
  }

  /** What `add` would make, and why it would fail. Nothing is changed. */
  plan(network: NetworkGiven, attachment?: Attachment): PlannedPlugin[] {
    return this.#run("plan", () => {
      if (attachment !== undefined) return this.#onAttachment(network, attachment);
      return { attachment: anyRequest(), network: this.#networkOf(network) };
    });
  }

  /** Compares attachments with the kernel: all, those of a network, those of a container. */
  inspect(wanted: { readonly network?: string; readonly containerId?: string } = {}): InspectedAttachment[] {
    return this.#run("inspect", () => {
      const given = knownKeys("wanted", wanted, ["network", "containerId"]);
      for (const [key, value] of Object.entries(given)) if (value !== undefined) text(`wanted.${key}`, value);
      return wanted;
    });
  }

  /** Attachments made and deleted from now on, by whichever program. */
  events(options: EventOptions = {}): AsyncIterableIterator<NetworkEvent> {
    return eventsOf(this.#runtime.cacheDirectory, options);
  }

  #onAttachment(network: unknown, attachment: unknown): Subjects["add"] {
    return { attachment: requestFrom(attachment, true), network: this.#networkOf(network) };
  }

  #networkOf(given: unknown): Network {
    if (typeof given === "string") return loadNetwork(this.#directory, text("network", given));
    if (typeof given !== "object" || given === null) {
      throw new ArgumentError("network", given, "must be a name, a configuration, or what network() answered");
    }
    return "source" in given ? given as Network : parseNetwork(JSON.stringify(given));
  }

  #networkOrRecorded(
    given: unknown,
    recorded: (name: string) => Network | undefined,
  ): { network: Network; isRecorded: boolean } {
    try {
      return { network: this.#networkOf(given), isRecorded: false };
    } catch (error) {
      const network = error instanceof UnknownNetworkError ? recorded(given as string) : undefined;
      if (network === undefined) throw error;
      return { network, isRecorded: true };
    }
  }

  #run<Name extends OperationName>(name: Name, make: () => Subjects[Name]): Outcomes[Name] {
    return this.#typed((warn) => {
      const request = { name, runtime: this.#runtime, subject: make(), call: crypto.randomUUID() };
      const served = this.#options.resident === false
        ? undefined
        : throughResident(name, JSON.stringify(request), ownEnvironment());
      if (served === undefined) return inProcess(request);
      served.warnings.forEach(warn);
      return outcomeOf<Name>(served.answer);
    });
  }

  /** Other errors become a CniError, and warnings go where the program wants them. */
  #typed<Value>(work: (warn: (message: string) => void) => Value): Value {
    const warnings: string[] = [], warn = (message: string) => void warnings.push(message);
    try {
      return whileWarning(warn, () => work(warn));
    } catch (error) {
      throw asCniError(error);
    } finally {
      this.#report(warnings);
    }
  }

  /** After the call, so that whoever listens may call again. What he throws must not take the place of the outcome. */
  #report(warnings: readonly string[]): void {
    const listen = this.#options.onWarning ?? ((message) => console.error(`patchbay: ${message}`));
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

function outcomeOf<Name extends OperationName>(text: string): Outcomes[Name] {
  const answer = JSON.parse(text) as OperationAnswer<Name>;
  if ("error" in answer) throw new CniError(answer.error.code, answer.error.message, answer.error.details);
  return (answer.outcome ?? undefined) as Outcomes[Name];
}
