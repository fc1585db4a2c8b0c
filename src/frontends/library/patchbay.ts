/** The package: `import { open } from "patchbay"`. docs/library.md shows how to use it. */

export {
  CniError,
  DECODING_FAILURE,
  INCOMPATIBLE_VERSION,
  INTERNAL,
  INVALID_CONFIG,
  INVALID_ENVIRONMENT,
  INVALID_NETNS,
  IO_FAILURE,
  LIMITED_CONNECTIVITY,
  PLUGIN_NOT_AVAILABLE,
  TRY_AGAIN_LATER,
  UNKNOWN_CONTAINER,
  UNSUPPORTED_FIELD,
} from "../../cni/error.ts";
export * from "../../cni/result.ts";
export * from "./documents.ts";
export { type NetworkGiven, open, Patchbay, type ValidAttachments } from "./calls.ts";
export type { EventOptions, NetworkEvent } from "./events.ts";
export { ArgumentError } from "./argument-error.ts";
export { openInThread, type ThreadedPatchbay } from "./thread.ts";
