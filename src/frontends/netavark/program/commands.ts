/** netavark's subcommands: the arguments and the implementation of each. */
import type { OptionRule } from "./arguments.ts";
import type { NetavarkCall } from "./call.ts";

export interface Subcommand {
  what: string;
  /** The name of the word after the subcommand, if it takes one. That must be given, and not be empty. */
  operand?: string;
  options?: readonly OptionRule[];
  needsConfig?: boolean;
  /** A resident runs it, unless it reads a file: src/native/launch.h hands it over. */
  isServed?: true;
  /** It runs until it is ended. */
  stays?: true;
  /** A document that it returns is printed as one line of JSON; a number is the exit status. */
  run(call: NetavarkCall): object | number | undefined;
}

const MOST_SECONDS = 2 ** 32 - 1;

const ofContainer = { operand: "NETWORK_NAMESPACE_PATH", needsConfig: true, isServed: true } as const;

export const commands: Readonly<Record<string, Subcommand>> = {
  create: {
    what: "Finishes the network on stdin: picks its interface, subnets and gateways",
    run: (call) => (require("./create.ts") as typeof import("./create.ts")).create(call),
  },
  "dhcp-proxy": {
    what: "Holds the DHCP leases of containers: the service of the plugin dhcp, for podman's units",
    options: [
      { long: "dir", short: "d", value: "DIR", what: "For the socket; by default /run/podman" },
      { long: "uds", short: "u", value: "UDS", what: "The socket, when it is elsewhere" },
      {
        long: "timeout",
        short: "t",
        value: "TIMEOUT",
        most: MOST_SECONDS,
        what: "Seconds until a lease is given up; by default 60",
      },
      {
        long: "activity-timeout",
        short: "a",
        value: "ACTIVITY_TIMEOUT",
        most: MOST_SECONDS,
        what: "Seconds without requests and leases until it ends; by default 300, 0 for never",
      },
    ],
    stays: true,
    run: (call) => (require("./dhcp-proxy.ts") as typeof import("./dhcp-proxy.ts")).dhcpProxy(call),
  },
  "firewall-reload": {
    what: "Writes the rules of all containers again",
    run: (call) => (require("./firewall-reload.ts") as typeof import("./firewall-reload.ts")).firewallReload(call),
  },
  "firewalld-reload": {
    what: "Writes the rules of all containers again whenever somebody has flushed them",
    stays: true,
    run: (call) => (require("./firewall-reload.ts") as typeof import("./firewall-reload.ts")).firewalldReload(call),
  },
  setup: {
    what: "Attaches the container on stdin to its networks, and prints what it got",
    ...ofContainer,
    run: (call) => (require("./setup-teardown.ts") as typeof import("./setup-teardown.ts")).setup(call),
  },
  teardown: {
    what: "Removes what setup made; the namespace may be gone",
    ...ofContainer,
    run: (call) => (require("./setup-teardown.ts") as typeof import("./setup-teardown.ts")).teardown(call),
  },
  update: {
    what: "Sets the DNS servers that are asked for names outside of a network",
    operand: "NETWORK_NAME",
    options: [{
      long: "network-dns-servers",
      value: "NETWORK_DNS_SERVERS",
      isRequired: true,
      repeats: true,
      what: "Addresses with commas between; empty for the host's own servers",
    }],
    needsConfig: true,
    run: (call) => (require("./update.ts") as typeof import("./update.ts")).update(call),
  },
  version: {
    what: "Prints the version of this program",
    run: () => (require("./version.ts") as typeof import("./version.ts")).printVersion(),
  },
};
