/** ADD for a caller that either gets the answer or has nothing attached. */
import { errorText } from "../../cni/error.ts";
import type { VersionedResult } from "../../cni/result-versions.ts";
import { isCallerGone } from "../../ffi/calls.ts";
import { addNetwork, deleteNetwork } from "../chain.ts";
import type { Network } from "../conf/network.ts";
import type { AttachmentRequest, Runtime } from "../plugin-call.ts";
import { printToStderr } from "./output.ts";

/** Returns the exit status; 1 when `answer` has failed. */
export function addAnswered(
  runtime: Runtime,
  network: Network,
  request: AttachmentRequest,
  answer: (result: VersionedResult | undefined) => void,
): number {
  const result = addNetwork(runtime, network, request);
  try {
    if (isCallerGone()) throw new Error("the caller is gone");
    answer(result);
    return 0;
  } catch (error) {
    // A caller without the result cannot delete the attachment.
    printToStderr(`the result cannot be written, so the attachment is taken back: ${errorText(error)}`);
    deleteNetwork(runtime, network, request);
    return 1;
  }
}
