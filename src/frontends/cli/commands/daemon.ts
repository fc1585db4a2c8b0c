/** The command of a service that has no other: `patchbay dhcp`. */
import type { DaemonCommand } from "../../../services/service.ts";
import { services } from "../../../services/table.ts";
import { type Command, UsageError } from "../command.ts";

export function daemonCommand(name: string): Command {
  return commandOf(services.find(({ command }) => command === name)!.daemon!);
}

export function commandOf({ flags, problemOf, run, ...described }: DaemonCommand): Command {
  return {
    runsByItself: true,
    stays: true,
    operands: "",
    operandCount: [0, 0],
    needsRoot: true,
    options: flags,
    ...described,
    run(given) {
      const words = Object.entries(flags).filter(([flag]) => given.has(flag))
        .map(([flag, { value }]) => value === undefined ? `-${flag}` : `-${flag}=${given.value(flag)}`);
      // In the words of this command, whose options have two dashes.
      const problem = problemOf(words, "--");
      if (problem !== undefined) throw new UsageError(problem);
      return run(words);
    },
  };
}
