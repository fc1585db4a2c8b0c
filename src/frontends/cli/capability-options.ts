/** What a person says of one attachment in place of $CAP_ARGS, in the words of `patchbay hook`. */
import { takesCapability, takesNone } from "../../runtime/capabilities.ts";
import type { Network } from "../../runtime/conf/network.ts";
import { parsePorts } from "../hook/ports.ts";
import { argsOfWords, wordNames } from "../hook/network-words.ts";
import type { GivenArguments } from "./command.ts";

/** Capability arguments. Throws when no plugin of the network takes one. */
export function capabilityArgsOf(given: GivenArguments, network: Network): Record<string, unknown> {
  const settings = (option: string) => given.values(option).map((text) => ({ text, source: `--${option}` }));
  const requireTaker = (option: string, args: Record<string, unknown>) => {
    const ignored = Object.keys(args).find((capability) => !takesCapability(network, capability));
    if (ignored !== undefined) throw takesNone(`--${option}`, ignored, [network.name]);
  };
  const words = wordNames.flatMap((name) =>
    settings(name).map((setting) => ({ name, value: setting.text, setting, text: setting.text }))
  );
  for (const word of words) requireTaker(word.name, argsOfWords([word]));
  const ports = settings("ports").flatMap(parsePorts);
  if (ports.length === 0) return argsOfWords(words);
  const args = { portMappings: ports };
  requireTaker("ports", args);
  return { ...args, ...argsOfWords(words) };
}
