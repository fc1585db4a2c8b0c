/** The form of the files in kinds/: how a kind of link is written into a request and read from an answer. */
import type { Writer } from "../wire.ts";

/** A kind of link with its settings, ready to be written into a request. */
export interface LinkKind {
  name: string;
  write?: (writer: Writer) => void;
}

/** How the settings of a kind are sent to the kernel and read from it. */
export interface LinkFormat<Settings> {
  kind(settings: Settings): LinkKind;
  settings(data: Uint8Array): Settings;
}
