/** Warnings about an attachment that was made, and of which a part has no effect. */
import { whatIsIdle } from "../engine/operator/idle.ts";
import { warn } from "../process/warn.ts";
import type { Network } from "./conf/network.ts";
import type { AttachmentRequest, Runtime } from "./plugin-call.ts";

export function warnOfIdle({ pluginPath }: Runtime, { name }: Network, request: AttachmentRequest): void {
  try {
    for (const line of whatIsIdle({ network: name, ...request }, pluginPath)) warn(`network ${name}: ${line}`);
  } catch {
    // The attachment is there, and `inspect` says what cannot be read of it.
  }
}
