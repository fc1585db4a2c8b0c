/**
 * What confines a container's link is there before the link can send, and goes after it: the ledger is undone in reverse.
 * A story in another order is refused, whatever its purpose is, so that no plugin can be written that way.
 */
import type { AnyKind } from "../contract/resource.ts";

export class StoryOrder {
  private opened: string | undefined;

  /** Takes the next kind of the story. Throws when it confines a link that can send already. */
  next({ kind, confines, opensLink }: AnyKind): void {
    if (confines && this.opened !== undefined) {
      throw new Error(
        `the plugin's story has "${kind}" after "${this.opened}": what confines a link comes before it can send`,
      );
    }
    if (opensLink) this.opened = kind;
  }
}
