/** For link plugins whose link has a master. */
import type { Attachment, PluginConfig } from "../../contract/plugin.ts";
import type { Master, MasterChoice } from "../../resources/link/shared/master-link.ts";

/** Undefined where only ADD can look: what earlier plugins of the chain would make is not there for `plan`. */
export function examinedMaster<At extends Attachment<PluginConfig & MasterChoice>>(
  at: At,
  choose: (at: At) => Master,
): Master | undefined {
  const { conf: { master }, purpose, prevResult } = at;
  const isOfChain = master === "" || prevResult?.interfaces?.some(({ name }) => name === master);
  return purpose === "plan" && prevResult !== undefined && isOfChain ? undefined : at.examine(() => choose(at));
}
