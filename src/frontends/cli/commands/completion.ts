/**
 * `patchbay completion SHELL`: a script that lets a shell complete command lines. The script calls this program with the
 * words typed so far, and the program knows what the last may become (candidates.ts).
 */
import { type Command, type GivenArguments, UsageError } from "../command.ts";
import { type Commands, completionOf } from "../candidates.ts";
import { print } from "../../../process/output.ts";

/** Stands for the names of files, which the shell knows. */
const FILES = ":files";

const bash = `_NAME() {
  local word
  COMPREPLY=()
  while IFS= read -r word; do
    if [[ $word = FILES ]]; then
      compopt -o default 2>/dev/null || true
    else
      COMPREPLY+=("$(printf %q "$word")")
    fi
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _NAME NAME
`;

const zsh = `#compdef NAME
_NAME() {
  local -a found shown
  local line files=
  for line in "\${(@f)$("\${words[1]}" __describe "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line = FILES ]]; then
      files=yes
    elif [[ -n $line ]]; then
      found+=("\${line%%$'\\t'*}")
      shown+=("\${line/$'\\t'/  -- }")
    fi
  done
  if (( $#found )); then compadd -l -d shown -a found; elif [[ -n $files ]]; then _files; fi
}
if [[ "\${funcstack[1]}" = "_NAME" ]]; then
  _NAME
elif (( $+functions[compdef] )); then
  compdef _NAME NAME
else
  print -u2 "NAME completion zsh: first run 'autoload -U compinit && compinit'"
fi
`;

const fish = `function __NAME_complete
  set -l words (commandline -opc)
  set -l program $words[1]
  set -e words[1]
  for line in ($program __describe $words (commandline -ct) 2>/dev/null)
    if test "$line" = FILES
      __fish_complete_path (commandline -ct)
    else
      printf '%s\\n' $line
    end
  end
end
complete -c NAME -f -a '(__NAME_complete)'
`;

const scripts: Record<string, string> = { bash, zsh, fish };
const shells = Object.keys(scripts);

export const completionCommand: Command = {
  summary: "print a script for command completion in a shell",
  operands: shells.join("|"),
  operandCount: [1, 1],
  options: {},
  notes: "  bash: source <(patchbay completion bash)\n" +
    "  zsh:  source <(patchbay completion zsh)    after 'autoload -U compinit && compinit'\n" +
    "  fish: patchbay completion fish | source\n",
  run({ operands: [shell] }: GivenArguments, program) {
    if (!Object.hasOwn(scripts, shell!)) {
      throw new UsageError(`there are scripts for ${shells.join(", ")}, not ${shell}`);
    }
    print(completionScript(shell!, program));
    return 0;
  },
};

/** For a program that is called by this name. */
export function completionScript(shell: string, program: string): string {
  return scripts[shell]!.replaceAll("NAME", program).replaceAll("FILES", FILES);
}

/** A line for each word; `isDescribed`: with a tab and what it is. */
export function printCandidates(commands: Commands, words: readonly string[], isDescribed: boolean): void {
  const { candidates, files } = completionOf(commands, words);
  // A word with a tab in it cannot be told from its description.
  const lines = isDescribed
    ? candidates.filter(({ word }) => !word.includes("\t")).map(({ word, what }) =>
      what === "" ? word : `${word}\t${what}`
    )
    : candidates.map(({ word }) => word);
  print([...lines, ...files ? [FILES] : []].map((line) => `${line}\n`).join(""));
}
