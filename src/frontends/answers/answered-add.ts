/** ADD whose caller either gets the result or has nothing attached. */
import { errorText } from "../../cni/error.ts";
import type { VersionedResult } from "../../cni/result-versions.ts";
import { collectFailures, followedBy, takingBackFailed, throwJoined } from "../../contract/failures.ts";
import { leaveWhatMayWait, requireCaller } from "../../process/calls.ts";
import { Interrupted, throwIfInterrupted } from "../../process/interruption.ts";
import { addNetwork, deleteNetwork } from "../../runtime/chain.ts";
import type { Network } from "../../runtime/conf/network.ts";
import type { AttachmentRequest, Runtime } from "../../runtime/plugin-call.ts";
import { printToStderr } from "../../process/output.ts";

/** The process that the path of the namespace names. As long as it has not ended, nobody else has its number. */
export interface NetnsHolder {
  readonly pid: number;
  readonly hasEnded: boolean;
}

/** Returns the exit status; 1 when `answer` has failed, or the holder has ended. */
export function addAnswered(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
  answer: (result: VersionedResult | undefined) => void,
  holder?: NetnsHolder,
): number {
  leaveWhatMayWait(network.plugins, runtime.pluginPath);
  const result = addNetwork(runtime, network, request);
  try {
    requireCaller();
    if (holder?.hasEnded) throw new Error(`process ${holder.pid} has ended`);
    throwIfInterrupted();
    answer(result);
    return 0;
  } catch (error) {
    // A caller without the result cannot delete the attachment.
    if (!(error instanceof Interrupted)) printToStderr(`the attachment is taken back: ${errorText(error)}`);
    const undone = holder?.hasEnded ? { ...request, netnsPath: "" } : request;
    const failures = collectFailures([undone], (one) => deleteNetwork(runtime, network, one));
    if (error instanceof Interrupted) throw followedBy(error, takingBackFailed(failures));
    throwJoined(failures);
    return 1;
  }
}
