/** The error of ADD when the container already has a link named CNI_IFNAME. */
import { CniError, INTERNAL } from "../../../cni/error.ts";

export function nameTakenError(text: string, cause?: unknown): CniError {
  const hint =
    "the container has an interface of this name: DEL the attachment first, or choose another name (CNI_IFNAME, or --ifname of patchbay)";
  return new CniError(INTERNAL, text, hint, { cause });
}
