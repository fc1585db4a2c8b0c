/** CHECK of an attachment to a network that no file describes, such as podman's: by what is recorded of it. */
import { type Owner, ownerText } from "../contract/owner.ts";
import { inspect } from "../engine/operator/inspect.ts";
import type { Runtime } from "./plugin-call.ts";
import { knownAttachments } from "./records.ts";

/** One line for each, by plugins. */
export function recordedDifferences(runtime: Runtime, owner: Owner): { type: string; lines: string[] }[] {
  const isMeant = (one: Owner) => ownerText(one) === ownerText(owner);
  const attachment = knownAttachments(runtime, owner.containerId).find(isMeant);
  if (attachment === undefined) throw new Error("neither a ledger nor a cached result says what was made");
  const { state, plugins } = inspect(attachment, runtime.pluginPath);
  if (state === "gone") throw new Error("the container's network namespace is gone");
  if (state === "elsewhere") {
    throw new Error(`${attachment.netnsPath} does not lead to the container's network namespace`);
  }
  const found = plugins.map(({ plugin, resources }) => ({
    type: plugin,
    lines: [...new Set(resources.flatMap(({ differences }) => differences))],
  }));
  return found.filter(({ lines }) => lines.length > 0);
}
