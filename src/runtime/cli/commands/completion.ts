/**
 * `patchbay completion SHELL`: a script that lets a shell complete command lines. The script calls this program, which
 * knows the commands, their options and the configured networks.
 */
import { namesIn } from "../../../ffi/files.ts";
import { networkNames } from "../../conf/directory.ts";
import { awaitsValue, type Command, type Given, UsageError } from "../command.ts";
import { configDirectoryOf, NETNS_DIRECTORY } from "../network-arguments.ts";
import { print } from "../output.ts";

const scripts: Record<string, string> = {
  bash: `_NAME() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    COMPREPLY+=("$(printf %q "$word")")
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _NAME NAME
`,
  zsh: `#compdef NAME
_NAME() {
  local -a found
  found=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -a found; else _files; fi
}
if [[ "\${funcstack[1]}" = "_NAME" ]]; then _NAME; else compdef _NAME NAME; fi
`,
  fish: `function __NAME_complete
  set -l words (commandline -opc)
  set -l program $words[1]
  set -e words[1]
  set -l found ($program __complete $words (commandline -ct) 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c NAME -f -a '(__NAME_complete)'
`,
};
const shells = Object.keys(scripts);

export const completionCommand: Command = {
  summary: "print a script for command completion in a shell",
  operands: shells.join("|"),
  operandCount: [1, 1],
  options: {},
  notes: "  bash: source <(patchbay completion bash)\n  zsh:  source <(patchbay completion zsh)\n" +
    "  fish: patchbay completion fish | source\n",
  run({ operands: [shell] }: Given, program) {
    if (!Object.hasOwn(scripts, shell!)) {
      throw new UsageError(`there are scripts for ${shells.join(", ")}, not ${shell}`);
    }
    print(scripts[shell!]!.replaceAll("NAME", program));
    return 0;
  },
};

export interface Commands {
  commands: Record<string, () => Command>;
  aliases: Record<string, string>;
}

/** What the last word may become. Where nothing is found, the shell completes file names. */
export function candidates(commands: Commands, words: readonly string[]): string[] {
  const begun = words.at(-1) ?? "";
  return possibleWords(commands, words.slice(0, -1), begun.startsWith("-"))
    .filter((candidate) => candidate.startsWith(begun)).sort();
}

function possibleWords({ commands, aliases }: Commands, before: readonly string[], isOption: boolean): string[] {
  const name = before.find((word) => !word.startsWith("-"));
  if (name === undefined) return ["help", ...Object.keys(commands)];
  if (name === "help") return Object.keys(commands);
  const command = commands[aliases[name] ?? name]?.();
  if (command === undefined) return [];
  if (isOption) return Object.keys(command.options).map((option) => `--${option}`);
  const rest = before.slice(before.indexOf(name) + 1);
  if (awaitsValue(rest.at(-1) ?? "", command.options)) return [];
  const operands = rest.filter((word, at) =>
    !word.startsWith("-") && !awaitsValue(rest[at - 1] ?? "", command.options)
  );
  return possibleOperands(command.operands, operands.length);
}

function possibleOperands(operands: string, position: number): string[] {
  const words = operands.split(" "), last = words.at(-1)!;
  const wanted = (words[position] ?? (last.includes("…") ? last : undefined))?.replace(/[[\]…]/g, "");
  if (wanted === undefined) return [];
  if (wanted === "NETWORK") return networkNames(configDirectoryOf(undefined));
  if (wanted === "NETNS") return namesIn(NETNS_DIRECTORY).map((name) => `${NETNS_DIRECTORY}/${name}`);
  return wanted.includes("|") ? wanted.split("|") : [];
}
