/** What the containers of a network share on the host, which no container's end removes: is it as ADD made it? */
import { loadKind } from "../../resources/table.ts";
import { HostView } from "../ledger/whereabouts.ts";
import { openSession } from "../run.ts";
import { whereaboutsOf } from "./inspect.ts";
import { type KnownAttachment, recordedInvocation } from "./known-attachment.ts";

/**
 * One line for each difference, whatever number of attachments has it. As for `repair`, those count whose container is
 * where they say: of others, this host has nothing, or nobody needs it.
 */
export function sharedDifferences(attachments: readonly KnownAttachment[], pluginPath: string): string[] {
  const session = openSession({ keepsOpen: true }), view = new HostView();
  const seen = new Set<string>(), lines = new Set<string>();
  try {
    for (const attachment of attachments) {
      let isInPlace: boolean | undefined;
      for (const add of attachment.ledgers.flatMap(({ adds }) => adds.at(-1) ?? [])) {
        session.withHost({ ...recordedInvocation(add, pluginPath), netnsPath: "" }, true, (host) => {
          for (const { kind: name, spec } of add.entries) {
            const kind = loadKind(name), text = JSON.stringify([name, spec]);
            if (kind?.isSharedOnHost === undefined || seen.has(text)) continue;
            isInPlace ??= whereaboutsOf(attachment, view) === "in place";
            if (!isInPlace) return;
            seen.add(text);
            for (const line of kind.verify(spec, host)) lines.add(line);
          }
        });
      }
    }
    return [...lines];
  } finally {
    session.close();
  }
}
