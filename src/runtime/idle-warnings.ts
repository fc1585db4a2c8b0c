/** Warnings about an attachment that was made, and of which a part has no effect. */
import { listAttachments } from "../engine/operator/known-attachment.ts";
import { whatIsIdle } from "../engine/operator/inspect.ts";
import { warn } from "../ffi/warn.ts";
import { listCache } from "./cache.ts";
import { cachedAttachments } from "./cached-attachments.ts";
import type { Network } from "./conf/network.ts";
import type { AttachmentRequest, Runtime } from "./plugin-call.ts";

export function warnOfIdle(
  { cacheDirectory, pluginPath }: Runtime,
  network: Network,
  request: AttachmentRequest,
): void {
  const { containerId, ifName } = request;
  try {
    const known = listAttachments(cachedAttachments(listCache(cacheDirectory, containerId)), containerId)
      .find((one) => one.network === network.name && one.ifName === ifName);
    const lines = known === undefined ? [] : whatIsIdle(known, pluginPath);
    for (const line of lines) warn(`network ${network.name}: ${line}`);
  } catch {
    // The attachment is there, and `inspect` says what cannot be read of it.
  }
}
