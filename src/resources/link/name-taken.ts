/** The error of an ADD whose CNI_IFNAME another link of the container has. */
import { CniError, INTERNAL } from "../../cni/error.ts";

export function nameTaken(text: string, cause?: unknown): CniError {
  const hint = "the container has an interface of this name: DEL the attachment first, or use another CNI_IFNAME";
  return new CniError(INTERNAL, text, hint, { cause });
}
