/**
 * What a person may do about an error. The errors keep their texts to the letter, because engines and users of the
 * reference plugins look for them; so the next step stands in a line of its own, and only on the command line.
 */
import { pluginNames } from "../../plugins/table.ts";
import { closestName } from "../spelling.ts";

const NAMES = 'CNI takes letters, digits, "_", "." and "-", with a letter or digit first';

interface Step {
  about: RegExp;
  /** `found` are the groups of `about`; `network` is what stands where NETWORK belongs. */
  step(found: readonly string[], network: string): string;
}

const steps: readonly Step[] = [
  {
    about: /no IP addresses available in range set/,
    step: (_, network) =>
      `'patchbay ipam list ${network}' lists who has the addresses; 'patchbay gc ${network} --gone' gives back those of ` +
      "containers that are gone",
  },
  {
    about: /failed to allocate all requested IPs/,
    step: (_, network) => `'patchbay status ${network}' lists the ranges of which --ip takes an address`,
  },
  {
    about: /^network (\S+) is in use/,
    step: ([network]) =>
      `'patchbay del ${network} CONTAINER' ends an attachment, 'patchbay gc ${network} --all' every one`,
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
    about:
      /firewall by firewalld: firewalld does not run|^(plugin .*)?firewalld cannot be reached|FirewallD1 was not provided/,
    step: () => 'start firewalld, or set "backend" of the plugin firewall to "iptables" or "nftables"',
  },
];

export function nextSteps(text: string, network: string | undefined): string[] {
  return steps.flatMap(({ about, step }) => {
    const found = about.exec(text);
    return found === null ? [] : [step(found.slice(1), network ?? "NETWORK")];
  });
}
