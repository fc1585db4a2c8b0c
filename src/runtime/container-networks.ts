/**
 * The networks of one container: all are attached or none, and everything that is recorded of them is removed. What an
 * earlier container of the same name has left is found by the rule of engine/ledger/whereabouts.ts.
 */
import { errorText } from "../cni/error.ts";
import { attempt, collectFailures, throwJoined } from "../contract/failures.ts";
import type { Owner } from "../contract/owner.ts";
import { wasBegunByResident } from "../engine/ledger/begun-by-resident.ts";
import { listLedgersOf } from "../engine/ledger/ledger.ts";
import type { LedgerRecord } from "../engine/ledger/record.ts";
import { placeOfAttachment } from "../engine/operator/inspect.ts";
import { openSession } from "../engine/run.ts";
import { whileDirectoryLocked } from "../process/lock.ts";
import { exists } from "../ffi/files.ts";
import { warn } from "../process/warn.ts";
import { loadRecorded } from "../plugins/table.ts";
import { deleteUnlocked } from "./chain.ts";
import type { Network } from "./conf/network.ts";
import { UnknownNetworkError } from "./conf/load.ts";
import { withContainerLocked } from "./lock.ts";
import { type AttachmentRequest, type Runtime, wrapped } from "./plugin-call.ts";
import { networkWithoutPlugins, type RecordedAttachment, recordedNetwork } from "./records.ts";

/** How one network of `Planned` is attached and taken back, and what is thrown when not all are. */
interface AllOrNone<Planned, Attached> {
  attach(planned: Planned): Attached;
  takeBack(planned: Planned): void;
  /** May throw when all are attached. */
  finish?(attached: readonly Attached[]): void;
  /** Makes the error of what failed and of what could not be taken back. */
  errorOf(error: unknown, notTakenBack: readonly unknown[]): unknown;
}

/** Attaches the networks one after the other. When one fails, or `finish`, those before it are taken back in reverse. */
export function attachAllOrNone<Planned, Attached>(
  networks: readonly Planned[],
  { attach, takeBack, finish, errorOf }: AllOrNone<Planned, Attached>,
): Attached[] {
  const begun: Planned[] = [], attached: Attached[] = [];
  try {
    for (const planned of networks) {
      attached.push(attach(planned));
      begun.push(planned);
    }
    finish?.(attached);
    return attached;
  } catch (error) {
    throw errorOf(error, collectFailures(begun.toReversed(), takeBack));
  }
}

/**
 * `left`: by an earlier container of this ID, which was killed, or was there before a boot, or whose call died half-way.
 * `here`: it is this container's. `elsewhere`: it is that of a container that lives in another namespace.
 */
export function placeOfRecorded(
  { recorded }: RecordedAttachment,
  netnsPath: string,
): ReturnType<typeof placeOfAttachment> {
  return recorded.ledgers.some(wasBegunByResident) ? "left" : placeOfAttachment(recorded, netnsPath);
}

/** An attachment that is removed, and its network as it is known. */
export interface Deletion {
  readonly network: Network;
  readonly request: AttachmentRequest;
}

/**
 * Uses the configuration that ADD recorded, because the present one may be another, or gone. Without a record it calls
 * `asConfigured`; when that fails, only the ledgers count. Does not throw.
 */
export function deletionOf(runtime: Runtime, attachment: RecordedAttachment, asConfigured: () => Deletion): Deletion {
  const recorded = attachment.isCached ? recordedNetwork(runtime, attachment) : undefined;
  if (recorded !== undefined && recorded.plugins.length > 0) return { network: recorded, request: attachment };
  const { network } = attachment;
  try {
    return asConfigured();
  } catch (error) {
    if (!(error instanceof UnknownNetworkError)) {
      warn(`network ${network} cannot be read, and what is recorded of it is undone: ${errorText(error)}`);
    }
    return { network: networkWithoutPlugins(network), request: attachment };
  }
}

/** In reverse order: eth10, eth2, lo. Returns what failed. For a caller that holds the lock. */
export function deleteAllRecorded(runtime: Runtime, deletions: readonly Deletion[]): unknown[] {
  const inReverse = deletions.toSorted((one, other) =>
    other.request.ifName.localeCompare(one.request.ifName, "en", { numeric: true })
  );
  return collectFailures(inReverse, (deletion) => {
    try {
      deleteRecordedUnlocked(runtime, deletion);
    } catch (error) {
      const { network, request: { containerId, ifName } } = deletion;
      throw wrapped(`${ifName} of container ${containerId} cannot be detached from network ${network.name}`, error);
    }
  });
}

/** DEL of the network's plugins, and of every other plugin of ours that has a ledger of the attachment. */
export function deleteRecorded(runtime: Runtime, deletion: Deletion): void {
  withContainerLocked(runtime, deletion.request.containerId, () => deleteRecordedUnlocked(runtime, deletion));
}

/** For a caller that holds the lock. `gone` is SessionOptions.gone. */
export function deleteRecordedUnlocked(
  runtime: Runtime,
  { network, request }: Deletion,
  gone?: readonly LedgerRecord[],
): void {
  const failures: unknown[] = [], { containerId, ifName } = request;
  attempt(failures, () => deleteUnlocked(runtime, network, request, gone));
  const told = failures.map(errorText).join();
  const more = deleteByLedgers(runtime, { network: network.name, containerId, ifName }, gone);
  throwJoined([...failures, ...more.filter((failure) => !told.includes(errorText(failure)))], "\n");
}

/** The network's configuration does not name these plugins, or their DEL has failed. Returns what failed. */
function deleteByLedgers({ pluginPath }: Runtime, key: Owner, gone?: readonly LedgerRecord[]): unknown[] {
  return collectFailures(listLedgersOf(key).toReversed(), ({ header }) => {
    const plugin = loadRecorded(header.plugin);
    if (plugin === undefined) return;
    const netnsPath = gone === undefined ? header.netnsPath : "";
    const remove = () =>
      void openSession({ gone }).runVerb(plugin, { ...header, netnsPath, command: "DEL", path: pluginPath });
    const directory = plugin.lockedDirectory?.(JSON.parse(header.stdin));
    if (directory === undefined || !exists(directory)) remove();
    else whileDirectoryLocked(directory, remove);
  });
}
