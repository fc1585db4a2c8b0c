/** What the kinds under kinds/ have in common: how one is written into a request, and read from an answer. */
import type { Writer } from "../wire.ts";

/** What a kind of link adds to the request: its name and its table's values, already paired. */
export interface LinkKind {
  name: string;
  write?: (writer: Writer) => void;
}

/** How a kind's own settings are told to the kernel and read from it; in a file of its own under kinds/. */
export interface LinkFormat<Settings> {
  kind(settings: Settings): LinkKind;
  settings(data: Uint8Array): Settings;
}
