/** A process of ours that stays, as the rest of the house knows it. */

export interface ServiceRow {
  /** What follows the program in its command line: `patchbay dhcp`. */
  command: string;
  /** `install --OPTION`, and `--no-OPTION`. */
  option: string;
  help: { install: string; remove: string };
  /** It comes with the first `install` and the packages: everything works without it, too. It takes upgrades over itself. */
  comesUnasked?: true;
  /** As `install` writes them. */
  units: Units;
  /** As our packages have them. */
  packagedUnits: Units;
  /** The first line of both files that `install` writes: whose they are. */
  mark: string;
  /** What happens next. */
  outlook: string;
  /** Without systemd, calls start it where this file is beside the program. */
  permission?: { file: string; text: string; outlook: string };
  /** What this host has elsewhere by it, which an uninstall does not take away: a line for who asks for one. Asks nobody. */
  staysElsewhere?(): string | undefined;
  /** How it is started where systemd does not run: the lines that follow the first. */
  withoutSystemd(program: string): string;
  /** Its command; undefined where that does more than to become the service. */
  daemon?: DaemonCommand;
}

/** A service of systemd that its socket starts, or that runs from the boot on. */
export interface Units {
  socket?: { name: string; text: string };
  service: { name: string; text(program: string): string };
}

export function unitNames({ socket, service }: Units): string[] {
  return [...socket === undefined ? [] : [socket.name], service.name];
}

export interface DaemonCommand {
  /** One line for the list of commands. */
  summary: string;
  flags: Readonly<Record<string, { value?: string; help: string }>>;
  notes: string;
  examples: readonly { args: string; what: string }[];
  /** What is wrong with the flags. `dash` stands before a flag's name. */
  problemOf(flags: readonly string[], dash: string): string | undefined;
  /** Returns the exit status. */
  run(flags: readonly string[]): number;
}
