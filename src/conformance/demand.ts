/** What is demanded of a plugin, as data, and what asking it has shown. */
import type { Kind } from "./subjects.ts";
import type { Trial } from "./trial.ts";

/**
 * must, should: the word of the specification, or of the conventions of CNI, in that place. implied: it says so without
 * either word, as in a table of codes, or it follows from what it says. engines: container engines rely on it.
 */
export type Strength = "must" | "should" | "implied" | "engines";

export interface SpecDemand {
  /** Stays the same from release to release. */
  name: string;
  sentence: string;
  /** A section of the specification 1.1.0, or of the conventions. For `engines`, who relies on it. */
  section: string;
  strength: Strength;
  /** The version of the specification from which it holds. */
  since: string;
  /** Undefined: asked of every plugin, also without a configuration. */
  kinds?: readonly Kind[];
  /** Why it is not asked of this plugin; undefined when it is. */
  unless?(trial: Trial): string | undefined;
  /** Throws an UnmetDemand unless the plugin meets the demand. */
  check(trial: Trial): void;
}

export type Outcome =
  | { demand: SpecDemand; outcome: "passed" }
  | { demand: SpecDemand; outcome: "skipped"; reason: string }
  | { demand: SpecDemand; outcome: "failed"; reason: string; byHand: readonly string[] }
  /** Asking it failed, through the plugin or by itself, so nobody knows whether it is met. */
  | { demand: SpecDemand; outcome: "unknown"; reason: string; byHand: readonly string[] };

export interface PluginReport {
  plugin: string;
  path: string;
  /** Undefined when nobody has said of which kind the plugin is. */
  kind: Kind | undefined;
  /** The version that the plugin was asked in. */
  version: string;
  outcomes: Outcome[];
}
