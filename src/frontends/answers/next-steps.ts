/** What a person may do about an error, on the command line. An error of ours says it itself (`nextStep` of CniError). */
import { errorText, nextStepOf } from "../../cni/error.ts";
import { missingPrivileges } from "../../ffi/capabilities.ts";
import { existingPartOf, exists } from "../../ffi/files.ts";

interface Place {
  network: string;
  command: string;
}

/**
 * Texts that are not ours alone: foreign plugins have the reference plugins', which ours have too, and the kernel's
 * reasons. What CHECK finds is a text as well. `found` are the groups of `about`.
 */
const steps: readonly { about: RegExp; step(found: readonly string[], place: Place): string | undefined }[] = [
  {
    about: /failed to open netns "([^"]*)": .*?(failed to Statfs|unknown FS magic|is not a network namespace)/,
    step([path, reason], { network, command }) {
      if (command === "check") {
        return `'patchbay inspect ${network}' says whether the namespace is gone; ` +
          `then 'patchbay gc ${network} --gone' removes what it left`;
      }
      if (reason !== "failed to Statfs") {
        return "NETNS is the path of a network namespace, a name of 'ip netns', or pid:N";
      }
      const name = /^\/run\/netns\/([^/]+)$/.exec(path!)?.[1];
      if (name?.startsWith("pid:")) return "pid:N takes the number of a process, as in pid:4711";
      if (name === undefined || name.includes(":")) return undefined;
      return `'ip netns list' lists the namespaces that have names; 'ip netns add ${name}' makes this one`;
    },
  },
  {
    about: /ARGS: unknown args /,
    step: () => '"IgnoreUnknown=1" among the pairs of $CNI_ARGS has plugins ignore those of others',
  },
  { about: /permission denied$/, step: () => missingPrivileges() },
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
    step: (_, { network }) =>
      `'patchbay ipam list ${network}' lists who has the addresses; 'patchbay gc ${network} --gone' gives back those of ` +
      `containers that are gone, and 'patchbay ipam release ${network} ADDRESS' one whose container nobody knows`,
  },
  {
    about: /failed to allocate all requested IPs/,
    step: (_, { network }) =>
      `'patchbay status ${network}' lists the ranges; a container gets one address of each set of ranges`,
  },
  {
    about: /requested IP address \S+ is not available in range set/,
    step: (_, { network }) => `'patchbay ipam list ${network}' lists who has the addresses`,
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

/** One or none. `line`: an error, or its text. */
export function nextSteps(line: unknown, network = "NETWORK", command = ""): string[] {
  const own = nextStepOf(line);
  if (own !== undefined) return [typeof own === "string" ? own : own(network)];
  const text = errorText(line);
  const found = steps.flatMap(({ about, step }) => {
    const groups = about.exec(text);
    return groups === null ? [] : step(groups.slice(1), { network, command }) ?? [];
  });
  return found.slice(0, 1);
}
