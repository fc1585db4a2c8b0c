/**
 * What a person may do about an error. The errors keep their texts to the letter, because engines and users of the
 * reference plugins look for them; so the next step stands in a line of its own, and only on the command line.
 */
import { missingPrivileges } from "../../ffi/capabilities.ts";
import { existingPartOf, exists } from "../../ffi/files.ts";
import { pluginNames } from "../../plugins/table.ts";
import { closestName } from "../../cni/spelling.ts";

const NAMES = 'CNI takes letters, digits, "_", "." and "-", with a letter or digit first';

interface Step {
  about: RegExp;
  /** The only command whose users it helps. */
  command?: string;
  /** `found` are the groups of `about`; `network` is what stands where NETWORK belongs. Undefined: there is none here. */
  step(found: readonly string[], network: string): string | undefined;
}

const steps: readonly Step[] = [
  {
    about: /failed to open netns ".*(failed to Statfs|unknown FS magic|is not a network namespace)/,
    command: "check",
    step: (_, network) =>
      `'patchbay inspect ${network}' says whether the namespace is gone; then 'patchbay gc ${network} --gone' removes what it left`,
  },
  {
    about: /failed to open netns ".*(unknown FS magic|is not a network namespace)/,
    step: () => "NETNS is the path of a network namespace, a name of 'ip netns', or pid:N",
  },
  {
    about: /failed to open netns "\/run\/netns\/pid:/,
    step: () => "pid:N takes the number of a process, as in pid:4711",
  },
  {
    about: /failed to open netns "\/run\/netns\/([^"/:]+)": failed to Statfs/,
    step: ([name]) => `'ip netns list' lists the namespaces that have names; 'ip netns add ${name}' makes this one`,
  },
  {
    about: /should not be the same; CNI_NETNS is "\/proc\/([0-9]+)\//,
    step: ([pid]) => `process ${pid} is in the host's network namespace; a container's process is in one of its own`,
  },
  {
    about: /should not be the same; CNI_NETNS is "([^"]*)"/,
    step: ([path]) =>
      `${path} is the host's own network namespace, and NETNS a container's; 'ip netns add NAME' makes one`,
  },
  {
    about: /^(plugin .*)?interface name (is too long|is \. or|contains)/,
    step: () => '--ifname or $CNI_IFNAME has at most 15 bytes, none of them "/", ":", "%" or white space, as in eth0',
  },
  {
    about: /^CAP_ARGS: /,
    step: () =>
      `it has the form '{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'; ` +
      "--ports, --ip, --mac, --ingress and --egress of 'add' say the same",
  },
  {
    about: /^invalid CNI_ARGS pair/,
    step: () => 'it has the form KEY=VALUE;KEY=VALUE, without ";" at the end; a value has no "="',
  },
  {
    about: /ARGS: unknown args /,
    step: () => '"IgnoreUnknown=1" among the pairs of $CNI_ARGS has plugins ignore those of others',
  },
  {
    about: /no net configurations found in /,
    step: () => "--config-dir or $NETCONFPATH names another directory",
  },
  { about: /permission denied$/, step: () => missingPrivileges() },
  {
    about: /cannot use state directory ".*(no space left on device|read-only file system|not a directory)$/,
    step: () =>
      "'add' writes down there what 'del' removes; make room or mend it, or choose another with $PATCHBAY_STATE_DIR, for " +
      "every command and every engine",
  },
  {
    about: /IPv6 is disabled on \S+: (\S+) is 1/,
    step: ([key]) =>
      `'sysctl -w ${key}=0' enables it; without it, leave the IPv6 ranges out of the network: what is attached keeps its IPv4`,
  },
  {
    about: /(\/\S+): (no space left on device|disk quota exceeded)$/,
    step([path]) {
      const place = existingPartOf(path!);
      return `make room: 'df -h ${place}' and 'df -i ${place}' say what is used up`;
    },
  },
  {
    about: /(\/\S+): read-only file system$/,
    step: ([path]) => `'findmnt -T ${existingPartOf(path!)}' shows the mount, which must be writable`,
  },
  {
    about: /no IP addresses available in range set/,
    step: (_, network) =>
      `'patchbay ipam list ${network}' lists who has the addresses; 'patchbay gc ${network} --gone' gives back those of ` +
      `containers that are gone, and 'patchbay ipam release ${network} ADDRESS' one whose container nobody knows`,
  },
  {
    about: /failed to allocate all requested IPs/,
    step: (_, network) =>
      `'patchbay status ${network}' lists the ranges; a container gets one address of each set of ranges`,
  },
  {
    about: /requested IP address \S+ is not available in range set/,
    step: (_, network) => `'patchbay ipam list ${network}' lists who has the addresses`,
  },
  {
    about: /^network (\S+) is in use/,
    step: ([network]) =>
      `'patchbay del ${network} CONTAINER' ends an attachment, 'patchbay gc ${network} --all' every one`,
  },
  {
    about: /^container (\S+) has \S+ by (\S+) in network (\S+), and lives; nothing is released/,
    step([container, ifName, network]) {
      const option = ifName === "eth0" ? "" : ` -i ${ifName}`;
      return `'patchbay del ${network} ${container}${option}' detaches it and releases its addresses; ` +
        "--force releases them all the same";
    },
  },
  {
    about: /^(plugin .*)?invalid characters in containerID/,
    step: () => `${NAMES}; --container-id chooses another ID`,
  },
  { about: /^(plugin .*)?invalid characters found in network name/, step: () => NAMES },
  {
    about: /"([^"]*)" is not part of patchbay/,
    step([type]) {
      const meant = closestName(type!, pluginNames);
      const question = meant === undefined ? "" : `did you mean "${meant}"? `;
      return `${question}--plugin-path or $CNI_PATH names the directories of other plugins`;
    },
  },
  {
    about: /the MAC address \S+ is (a group's, and no link's|no address)/,
    step: () => "a link's MAC address has an even first byte and is not all zeros, as in 02:00:00:00:00:09",
  },
  {
    about: /an earlier plugin of the network makes it/,
    step: (_, network) =>
      `only one plugin of network ${network} may make the interface; another network makes another`,
  },
  {
    about: /failed to find plugin "[^"]*" in path \[(.*)\]/,
    step([path]) {
      const missing = path!.split(" ").filter((directory) => directory !== "" && !exists(directory));
      const why = missing.length === 0
        ? ""
        : `${missing.join(" and ")} ${missing.length === 1 ? "does" : "do"} not exist; `;
      return `${why}--plugin-path or $CNI_PATH names the directories of plugins; without both, those in patchbay are used`;
    },
  },
  {
    about:
      /firewall by firewalld: firewalld does not run|^(plugin .*)?firewalld cannot be reached|FirewallD1 was not provided/,
    step: () => 'start firewalld, or set "backend" of the plugin firewall to "iptables" or "nftables"',
  },
];

export function nextSteps(text: string, network: string | undefined, ofCommand?: string): string[] {
  const found = steps.flatMap(({ about, command, step }) => {
    const groups = command === undefined || command === ofCommand ? about.exec(text) : null;
    return groups === null ? [] : step(groups.slice(1), network ?? "NETWORK") ?? [];
  });
  return found.slice(0, 1);
}
