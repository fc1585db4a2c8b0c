/** `patchbay dhcp`. */
import { flagsOfService, parseFlags, WrongFlags } from "../../../services/dhcp/service/flags.ts";
import { type Command, UsageError } from "../command.ts";

export const dhcpCommand: Command = {
  runsByItself: true,
  summary: "stay, and hold the leases of the plugin dhcp: renew them, and give them back",
  operands: "",
  operandCount: [0, 0],
  needsRoot: true,
  options: flagsOfService,
  notes: "The same as 'dhcp daemon', whose flags have one dash instead of two.\n",
  examples: [{ args: "--broadcast", what: "where servers' answers to one address do not arrive" }],
  run(given, _program, services) {
    const flags = Object.entries(flagsOfService).filter(([name]) => given.has(name))
      .map(([name, { value }]) => value === undefined ? `-${name}` : `-${name}=${given.value(name)}`);
    judge(flags);
    return services.runDhcpDaemon(flags);
  },
};

/** In the words of this command, whose options have two dashes. */
function judge(flags: readonly string[]): void {
  try {
    parseFlags(flags, "--");
  } catch (error) {
    throw error instanceof WrongFlags ? new UsageError(error.problem) : error;
  }
}
