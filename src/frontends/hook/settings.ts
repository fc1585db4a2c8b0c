/**
 * The settings of a hook: its arguments or, where they say nothing, the container's annotations. Both use the same
 * words. Pure.
 */
import { CniError, INVALID_CONFIG } from "../../cni/error.ts";
import { closestKey } from "../../cni/spelling.ts";

/** OCI asks for names in reverse domain notation (OCI runtime specification, "Annotations"). */
const PREFIX = "dev.patchbay.";

export const settingNames = ["networks", "ports", "name", "capabilities"] as const;
export type SettingName = (typeof settingNames)[number];

export interface Setting {
  readonly text: string;
  /** What errors call it: `annotation dev.patchbay.ports`, `--ports`. */
  readonly source: string;
  /** The container's author wrote it, and is trusted with less than the author of the hook. */
  readonly isAnnotation?: true;
}

export type HookSettings = Readonly<Partial<Record<SettingName, Setting>>>;

/** Refuses annotations that look like ours and are not: a misspelt one would be missed silently. */
export function hookSettingsOf(annotations: Readonly<Record<string, string>>, args: HookSettings): HookSettings {
  const settings: Partial<Record<SettingName, Setting>> = {};
  for (const [key, text] of Object.entries(annotations)) {
    if (!key.startsWith(PREFIX)) continue;
    const name = settingNames.find((one) => `${PREFIX}${one}` === key);
    if (name === undefined) throw unknown(key);
    settings[name] = { text, source: `annotation ${key}`, isAnnotation: true };
  }
  return { ...settings, ...args };
}

function unknown(key: string): CniError {
  const meant = closestKey(key.slice(PREFIX.length), settingNames);
  const next = meant === undefined
    ? `there are ${settingNames.map((name) => PREFIX + name).join(", ")}`
    : `did you mean ${PREFIX}${meant}?`;
  return new CniError(INVALID_CONFIG, `unknown annotation ${key}`, next);
}

/** `part` is what is wrong in the setting, `rule` says what it should be. */
export function refusal({ source }: Setting, part: string, rule: string): CniError {
  return new CniError(INVALID_CONFIG, `${source}: ${JSON.stringify(part.slice(0, 200))} is wrong`, rule);
}
