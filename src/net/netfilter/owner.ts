/**
 * Who wrote a rule or a policy, by the names and comments that programs give to what they write. In iptables' tables all
 * programs meet: there, chains have the names.
 */
import type { Rule, RuleChain, Ruleset } from "./ruleset.ts";
import { foreignName } from "./foreign-name.ts";
import type { Place } from "./traversal.ts";

export interface Maker {
  /** `Docker`, `patchbay`, `the administrator`, or `another program`. */
  name: string;
  /** What is known of whom the rule is for; nothing in it is obeyed by a terminal. */
  network?: string;
  containerId?: string;
  /** What else helps to find out. */
  remark?: string;
}

interface Program {
  name: string;
  tables?: RegExp;
  chains?: RegExp;
  /** For rules in chains that all programs share. */
  comments?: RegExp;
  /** Others may write rules for its links, too. */
  links?: RegExp;
  /** It may have set the policy of iptables' own chains. */
  setsPolicies?: true;
}

const CNI = "CNI plugins";

/** The first that fits counts. */
const programs: readonly Program[] = [
  {
    name: "Docker",
    tables: /^docker-bridges$/,
    chains: /^DOCKER(-|$)/,
    links: /^(docker0|br-[0-9a-f]{12})$/,
    setsPolicies: true,
  },
  {
    name: "firewalld",
    tables: /^firewalld(_|$)/,
    chains:
      /^((INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING)_(direct|(IN_|OUT_)?ZONES|POLICIES)|(IN|FWD[IO]?|PRE|POST)_)/,
  },
  { name: "ufw", chains: /^ufw6?-/, setsPolicies: true },
  { name: "kube-router", chains: /^KUBE-(ROUTER|POD-FW|NWPLCY)-/, comments: /^kube-router / },
  { name: "kubelet", chains: /^KUBE-(FIREWALL$|KUBELET-)/ },
  { name: "kube-proxy", tables: /^kube-proxy$/, chains: /^KUBE-/, comments: /^kubernetes / },
  { name: "libvirt", tables: /^libvirt_network$/, chains: /^(LIBVIRT_|libvirt-)/, links: /^virbr\d+$/ },
  { name: "netavark", tables: /^netavark$/, chains: /^NETAVARK[_-]/, comments: /^netavark /, links: /^podman\d+$/ },
  { name: "Tailscale", chains: /^ts-(input|forward|postrouting)$/, links: /^tailscale\d+$/ },
  { name: "Calico", tables: /^calico$/, chains: /^cali-/, comments: /^cali:/ },
  { name: "Cilium", chains: /^(OLD_)?CILIUM_/, comments: /^cilium(-feeder)?:/ },
  { name: "flannel", tables: /^flannel-ipv[46]$/, chains: /^FLANNEL-/, comments: /^flanneld / },
  { name: "Antrea", tables: /^antrea/, chains: /^ANTREA-/, comments: /^Antrea: / },
  { name: "LXD", tables: /^lxd$/, comments: /^generated for LXD / },
  { name: "Incus", tables: /^incus$/, comments: /^generated for Incus / },
  { name: "fail2ban", tables: /^f2b-/, chains: /^f2b-/ },
  { name: "NetworkManager", tables: /^nm-shared-/, chains: /^nm-sh-/, comments: /^nm-shared-/ },
  { name: "systemd-networkd", tables: /^io\.systemd\.nat$/ },
  { name: "Nomad", chains: /^NOMAD-/ },
  {
    name: CNI,
    tables: /^cni_(plugins_masquerade|hostport)$/,
    chains: /^(CNI-|cni-br-iface-)/,
    comments: /^(CNI |(dnat )?name: ".*" id: "|macspoofchk-)/,
  },
];

const FOR_THE_ADMINISTRATOR = ["DOCKER-USER", "CNI-ADMIN"];
const SHARED_TABLES = ["filter", "nat", "mangle", "raw", "security"];

/**
 * `ownTables`: as in `inet patchbay_firewall`. Without them nothing is ours: in a container's namespace its root writes what
 * it likes.
 */
export function makerOf(
  { chain, rule, element }: Place,
  ruleset: Pick<Ruleset, "chains"> = { chains: [] },
  ownTables?: readonly string[],
): Maker {
  const isOurs = rule?.owner !== undefined || ownTables?.includes(`${chain.family} ${chain.table}`);
  if (ownTables !== undefined && isOurs) return { name: "patchbay", ...ownerIn(rule?.owner ?? element?.comment) };
  const named = attachmentIn(rule?.comment);
  const found = programs.find(({ tables }) => tables?.test(chain.table)) ?? programOfShared(chain, rule);
  if (found?.name === CNI) return byCni(named, ownTables !== undefined && isOfIptables(chain));
  if (found !== undefined) return { name: found.name, ...named };
  if (!isShared(chain)) return { name: "another program" };
  if (FOR_THE_ADMINISTRATOR.includes(chain.name)) {
    return { name: "the administrator", remark: `${chain.name} is a chain for rules of one's own` };
  }
  return { name: "another program", ...remarkOn(chain, rule, ruleset.chains) };
}

function programOfShared(chain: RuleChain, rule: Rule | undefined): Program | undefined {
  if (!isShared(chain)) return undefined;
  if (chain.base === undefined && !FOR_THE_ADMINISTRATOR.includes(chain.name)) {
    const found = programOf(chain.name);
    if (found !== undefined) return found;
  }
  const comment = rule?.comment;
  return programOf(rule && leadsTo(rule)) ??
    (comment === undefined ? undefined : programs.find(({ comments }) => comments?.test(comment)));
}

/** The tables of iptables, and of ebtables. */
function isShared({ family, table }: RuleChain): boolean {
  return ["ip", "ip6", "bridge"].includes(family) && SHARED_TABLES.includes(table);
}

function isOfIptables(chain: RuleChain): boolean {
  return isShared(chain) && chain.family !== "bridge";
}

function programOf(chain: string | undefined): Program | undefined {
  return chain === undefined ? undefined : programs.find(({ chains }) => chains?.test(chain));
}

function leadsTo({ operations }: Rule): string | undefined {
  for (const operation of operations) {
    if (operation.does === "verdict" && "chain" in operation.verdict) return operation.verdict.chain;
  }
  return undefined;
}

const MOST_NAMED = 3;

/** Which programs write here; for a policy, those that are known to set it. */
function remarkOn(
  { family, base, isLegacy }: RuleChain,
  rule: Rule | undefined,
  chains: readonly RuleChain[],
): { remark?: string } {
  if (base === undefined) return {};
  const there = new Set<Program>();
  for (const chain of chains) {
    const found = chain.family === family && chain.isLegacy === isLegacy && isShared(chain)
      ? programOf(chain.name)
      : undefined;
    if (found !== undefined) there.add(found);
  }
  const setters = [...there].filter(({ setsPolicies }) => rule === undefined && setsPolicies);
  const all = (setters.length > 0 ? setters : [...there]).map(({ name }) =>
    name.endsWith("s") ? `${name}'` : `${name}'s`
  );
  const named = all.length > MOST_NAMED ? [...all.slice(0, MOST_NAMED), "others'"] : all, last = named.pop();
  const parts = last === undefined
    ? []
    : [`${named.length > 0 ? `${named.join(", ")} and ` : ""}${last} chains are here`];
  const linkOf = rule && programs.find(({ links }) => linksIn(rule).some((name) => links?.test(name)));
  if (linkOf !== undefined) parts.push(`the rule is for a link of ${linkOf.name}`);
  return parts.length === 0 ? {} : { remark: parts.join("; ") };
}

function linksIn({ operations }: Rule): string[] {
  return operations.flatMap((operation, at) => {
    const before = operations[at - 1];
    const isName = before?.does === "meta" && /^[io]ifname$/.test(before.key) && operation.does === "compare";
    return isName ? [new TextDecoder().decode(operation.value).replace(/\0+$/, "")] : [];
  });
}

type Attachment = Pick<Maker, "network" | "containerId">;

/** The reference plugins' comments, and netavark's, which has no quotation marks. */
function attachmentIn(comment = ""): Attachment {
  const spoofing = /^macspoofchk-(.+)-[^-]+$/.exec(comment);
  if (spoofing !== null) return { containerId: foreignName(spoofing[1]!) };
  const parts = /^(?:dnat )?name: ("?)([^"]*)\1 id: ("?)([^"]*)\3$/.exec(comment);
  return parts === null ? {} : { network: foreignName(parts[2]!), containerId: foreignName(parts[4]!) };
}

function byCni(named: Attachment, mayBeOurs: boolean): Maker {
  const { network, containerId = "" } = named;
  // `default-4f1c…`: nerdctl puts its namespace before the id.
  const caller = network === "nomad" ? "Nomad" : /^[\w.-]+-[0-9a-f]{64}$/.test(containerId) ? "nerdctl" : CNI;
  return { name: caller, ...named, ...mayBeOurs && { remark: "patchbay, too, writes such rules" } };
}

/**
 * What Patchbay writes with its rules and elements: `id: 4d2f…, if: eth0, net: mynet`. A text that was cut off begins with
 * a hash; what is at its end may not be all.
 */
function ownerIn(text: string | undefined): Attachment {
  const parts = /^([0-9a-f]{16}, )?id: ([^,]*)(?:, if: ([^,]*)(?:, net: (.*))?)?$/su.exec(text ?? "");
  if (parts === null) return {};
  const [, hash, containerId, ifName, network] = parts, isCut = hash !== undefined;
  return {
    ...isCut && ifName === undefined ? {} : { containerId: foreignName(containerId!) },
    ...isCut || network === undefined ? {} : { network: foreignName(network) },
  };
}
