/**
 * What the kernel holds for a machine and its containers, as text lines that two machines, or two moments of one,
 * can be compared by. Names, MACs and link-local addresses that were chosen at random are replaced by the part
 * they play (`veth>c1/eth0`); indexes, handles, counters, timers and packet statistics are left out.
 *
 * Longer than 300 lines: one list of everything the kernel holds, and the same names for all of it.
 */
import type { Container, Machine } from "./machine.ts";

export interface Snapshot {
  lines: string[];
  /** Lines that will still change or appear without anybody's doing, because the kernel has not finished. */
  unfinished: string[];
  /** Replaces this moment's random names in another text, such as a result. */
  name(text: string): string;
}

export interface SnapshotOptions {
  /** MACs that the test asked for. They are compared as they are. */
  macs?: readonly string[];
}

// deno-lint-ignore no-explicit-any
type Json = any;

const section = "%%%";
/**
 * Runs thousands of times, sometimes under emulation, so every process counts. stable_secret is left out because reading
 * it fails when it is not set.
 */
const scan = `
links=$(ip -j -d -batch - <<END
link show
addr show
route show table all
neigh show nud permanent
rule show
END
)
printf "%s\\n" "$links"
ip -j -6 rule show
case $links in *'"info_kind":"bridge"'*) bridge -j vlan show ;; esac
rules=$(nft -j list ruleset)
printf "%s\\n" "$rules"
for family in ip ip6; do
  echo ${section}
  case $rules in *'"family": "'$family'"'*) \${family}tables-save 2>/dev/null ;; esac
  echo ${section}
  [ ! -e /proc/net/\${family}_tables_names ] || \${family}tables-legacy-save
done
echo ${section}
cd /proc/sys/net; head -n 1 ipv4/conf/*/* ipv6/conf/*/* ipv4/ip_forward 2>/dev/null || true
echo ${section}
disciplines=$(tc qdisc show)
while read _ kind handle _ dev rest; do
  [ "\${handle:-0:}" != 0: ] || continue
  echo "$dev qdisc $kind $handle $rest"
  case $kind in
    htb) tc class show dev $dev | sed "s/^/$dev /"; tc filter show dev $dev | sed "s/^/$dev /" ;;
    ingress) tc filter show dev $dev ingress | sed "s/^/$dev ingress /" ;;
  esac
done <<END
$disciplines
END
echo ${section}
`;
const scanHost = `${scan}\ncd /sys/class/net; grep -Hs . */addr_assign_type || true`;

export async function snapshot(machine: Machine, options: SnapshotOptions = {}): Promise<Snapshot> {
  const [host, ...containers] = await Promise.all([
    machine.sh(scanHost).then((text) => read("host", text)),
    ...machine.containers.map(async (one: Container) => read(one.name, await machine.sh(scan, { in: one }))),
  ]);
  const name = namer([host!, ...containers], new Set(options.macs?.map((mac) => mac.toLowerCase())));
  const lines = [host!, ...containers].flatMap((scope) => linesOf(scope)).map(name);
  const unfinished = [host!, ...containers].flatMap((scope) => unfinishedIn(scope)).map(name);
  return { lines: lines.sort(), unfinished, name };
}

interface Scope {
  label: string;
  links: Json[];
  addresses: Json[];
  routes: Json[];
  neighbours: Json[];
  rules: Json[];
  vlans: Json[];
  nft: Json[];
  iptables: [string, string[]][];
  sysctls: string[];
  trafficControl: string[];
  assignTypes: string[];
}

function read(label: string, text: string): Scope {
  const [json, iptables, legacy, ip6tables, legacy6, sysctls, trafficControl, assignTypes = ""] = text.split(
    `${section}\n`,
  );
  // A namespace without IPv6 rules or bridges prints an empty line or nothing.
  const documents: Json[] = json!.split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
  const nft = documents.pop().nftables;
  const [links, addresses, routes, neighbours, rules4, rules6, vlans = []] = documents;
  const split = (lines: string) => lines.split("\n").filter((line) => line !== "");
  return {
    label,
    links,
    addresses,
    routes,
    neighbours,
    rules: [...rules4, ...rules6],
    vlans,
    nft,
    iptables: [
      ["iptables", split(iptables!)],
      ["iptables-legacy", split(legacy!)],
      ["ip6tables", split(ip6tables!)],
      ["ip6tables-legacy", split(legacy6!)],
    ],
    sysctls: sysctlsIn(sysctls!),
    trafficControl: split(trafficControl!),
    assignTypes: split(assignTypes),
  };
}

/** `PATH:VALUE` from what head(1) prints: a line with the path, a line with the value, an empty line. */
function sysctlsIn(text: string): string[] {
  return text.split("==> ").flatMap((part) => {
    const [head, value = ""] = part.split("\n"), path = head!.replace(/ <==$/, "");
    return path === "" || path.endsWith("/stable_secret") ? [] : [`${path}:${value}`];
  });
}

const RANDOM_LINK = /\bveth[0-9a-f]{8}\b/g;
/** Counters, and handles that the kernel chose. */
const CHOSEN_BY_KERNEL = / 8[0-9a-f]{3}:(?= )| refcnt \d+| direct_packets_stat \d+| ref \d+ bind \d+$/g;
const MAC = /\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b/g;
/** None, broadcast and multicast. */
const FIXED_MAC = /^(00:00:00:00:00:00|ff:ff:ff:ff:ff:ff|01:.*)$/;
const LINK_LOCAL = /\bfe80::[0-9a-f:]+/g;

function namer(scopes: Scope[], keptMacs: Set<string>): (text: string) => string {
  const [host, ...containers] = scopes as [Scope, ...Scope[]];
  const links = new Map<string, string>();
  for (const link of host.links) {
    if (!link.ifname.match(RANDOM_LINK)) continue;
    const peers = containers.flatMap((scope) =>
      scope.links
        .filter((peer) => peer.link_index === link.ifindex && link.link_index === peer.ifindex)
        .map((peer) => `${scope.label}/${peer.ifname}`)
    );
    // Links of two containers may have the same index; then both are named.
    links.set(link.ifname, `veth>${link.link ?? peers.join("|")}`);
  }
  const nameLinks = (text: string) => text.replace(RANDOM_LINK, (found) => links.get(found) ?? "veth>gone");

  const macs = new Map<string, string>();
  const linkLocals = new Map<string, string>();
  // Containers first and bridges last: a bridge with a port's MAC is then shown with that port's name.
  for (const scope of [...containers, host]) {
    const bridgesLast = [...scope.links.filter((link) => !isBridge(link)), ...scope.links.filter(isBridge)];
    for (const { address: mac, ifname } of bridgesLast) {
      if (!mac || /^[0:]*$/.test(mac) || macs.has(mac)) continue;
      const owner = `${scope.label}/${nameLinks(ifname)}`;
      macs.set(mac, keptMacs.has(mac) ? mac : `mac(${owner})`);
      linkLocals.set(linkLocalOf(mac), `linklocal(${owner})`);
    }
  }
  return (text) =>
    nameLinks(
      text
        .replace(LINK_LOCAL, (found) => (found === "fe80::" ? found : linkLocals.get(found) ?? "linklocal(gone)"))
        .replace(MAC, (found) => macs.get(found) ?? (FIXED_MAC.test(found) ? found : "mac(gone)")),
    );
}

function isBridge(link: Json): boolean {
  return link.linkinfo?.info_kind === "bridge";
}

/** The address the kernel gives a link by its MAC (RFC 4291, appendix A), as ip(8) prints it. */
function linkLocalOf(mac: string): string {
  const bytes = mac.split(":").map((part) => parseInt(part, 16));
  bytes[0]! ^= 2;
  bytes.splice(3, 0, 0xff, 0xfe);
  const groups = [];
  for (let index = 0; index < 8; index += 2) groups.push(((bytes[index]! << 8) | bytes[index + 1]!).toString(16));
  // A first group of zero (MACs with 02:00) disappears in the "::". No other group has a zero beside it.
  return `fe80::${groups.join(":").replace(/^0:/, "")}`;
}

const PASSING = /^(ifindex|link_index|link_netnsid|link|.*_timer|bridge_id|root_id|stats.*)$/;

function linesOf(scope: Scope): string[] {
  const lines: string[] = [];
  const say = (line: string) => lines.push(`${scope.label} ${line}`);
  // A bridge takes the lowest MAC of its ports, which is random when it has several.
  const macs = new Map<string, string>(scope.links.filter(isBridge).map((link) => [link.ifname, link.address]));
  for (const link of scope.links) {
    const { ifname } = link;
    const address = macs.has(ifname) && !/^[0:]*$/.test(link.address)
      ? `mac(${scope.label}/${ifname})`
      : link.address;
    flatten({ ...link, address }, "", (path, value) => say(`link ${ifname} ${path}=${value}`));
  }
  for (const line of scope.assignTypes) {
    const [ifName, type] = line.split("/addr_assign_type:") as [string, string];
    say(`link ${ifName} addr_assign_type=${type}`);
  }
  for (const { ifname, addr_info } of scope.addresses) {
    for (const { local, prefixlen, tentative, ...rest } of addr_info) {
      // A link-local address is tentative while the kernel detects duplicates.
      const still = tentative && !local.startsWith("fe80") ? { tentative } : {};
      const own = macs.has(ifname) && local === linkLocalOf(macs.get(ifname)!);
      say(
        `address ${ifname} ${own ? `linklocal(${scope.label}/${ifname})` : local}/${prefixlen} ${
          JSON.stringify({ ...rest, ...still })
        }`,
      );
    }
  }
  for (const route of scope.routes) {
    if (/^(local|anycast)$/.test(route.type) && route.dst.startsWith("fe80")) continue;
    say(`route ${JSON.stringify(route)}`);
  }
  for (const neighbour of scope.neighbours) say(`neighbour ${JSON.stringify(neighbour)}`);
  for (const rule of scope.rules) say(`rule ${JSON.stringify(rule)}`);
  for (const { ifname, vlans } of scope.vlans) {
    for (const { vlan, vlanEnd, flags = [] } of vlans) {
      say(`vlan ${ifname} ${vlan}-${vlanEnd ?? vlan} ${flags.join()}`);
    }
  }
  nftLines(scope.nft, say);
  for (const [program, saved] of scope.iptables) iptablesLines(program, saved, say);
  for (const line of scope.trafficControl) say(`tc ${line.replace(CHOSEN_BY_KERNEL, "")}`);
  for (const line of scope.sysctls) say(`sysctl ${line.replace(":", "=")}`);
  return lines;
}

/**
 * The kernel handles carrier changes in a queue, on a busy machine seconds later. The link's state, its link-local address
 * and its routes appear only then. Duplicate detection of other addresses ends even later.
 */
function unfinishedIn({ label, links, addresses }: Scope): string[] {
  const waiting = links.filter(isStateLate).map(({ ifname, operstate }) => `${label} link ${ifname} is ${operstate}`);
  const hasCarrier = new Set(links.filter(({ flags }) => flags.includes("LOWER_UP")).map(({ ifname }) => ifname));
  const detecting = addresses.filter(({ ifname }) => hasCarrier.has(ifname)).flatMap(({ ifname, addr_info }) =>
    addr_info
      .filter(({ tentative, dadfailed, local }: Json) => tentative && !dadfailed && !local.startsWith("fe80"))
      .map(({ local }: Json) => `${label} address ${ifname} ${local} is tentative`)
  );
  return [...waiting, ...detecting];
}

/** Whether the link's state does not match its carrier yet. A veth's is unknown for a moment; for other kinds it may stay. */
function isStateLate({ flags, operstate, linkinfo }: Json): boolean {
  if (!flags.includes("UP")) return false;
  if (operstate === "UNKNOWN") return linkinfo?.info_kind === "veth";
  return flags.includes("LOWER_UP") ? /^(LOWERLAYER)?DOWN$/.test(operstate) : operstate === "UP";
}

function flatten(value: Json, path: string, say: (path: string, value: string) => void): void {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return say(path, JSON.stringify(value));
  for (const [key, inner] of Object.entries(value)) {
    if (!PASSING.test(key)) flatten(inner, path === "" ? key : `${path}.${key}`, say);
  }
}

/** Tables of iptables are compared as iptables-save prints them, because nft shows their extensions only as opaque. */
const XTABLES = /^(ip|ip6) (raw|mangle|nat|filter|security)$/;

function nftLines(objects: Json[], say: (line: string) => void): void {
  const positions = new Map<string, number>();
  for (const object of objects) {
    const [[type, found]] = Object.entries(object) as [[string, Json]];
    if (type === "metainfo" || XTABLES.test(`${found.family} ${found.table ?? found.name}`)) continue;
    const { handle: _handle, packets: _packets, bytes: _bytes, ...rest } = found;
    if (Array.isArray(rest.elem)) rest.elem = rest.elem.map((element: Json) => JSON.stringify(element)).sort();
    const place = `${type} ${rest.family} ${rest.table ?? ""} ${rest.chain ?? rest.name}`;
    const position = positions.get(place) ?? 0;
    positions.set(place, position + 1);
    const text = JSON.stringify(rest).replace(/"counter":\{"packets":\d+,"bytes":\d+\}/g, `"counter":{}`);
    say(`nft ${place} #${position} ${text}`);
  }
}

/** Rules that only we have, before those that the reference plugin has too: they do not count for the others' positions. */
const SPARING = /^-A CNI-DN-.* -d (127\.0\.0\.(1\/32|0\/8)|::1\/128) /;

function iptablesLines(program: string, saved: string[], say: (line: string) => void): void {
  let table = "";
  const positions = new Map<string, number>();
  for (const line of saved) {
    if (line.startsWith("*")) table = line.slice(1);
    if (!/^[:-]/.test(line)) continue;
    const place = `${table} ${line.split(" ").slice(0, 2).join(" ")}`;
    const position = positions.get(place) ?? 0;
    if (!SPARING.test(line)) positions.set(place, position + 1);
    say(`${program} ${table} #${position} ${line.replace(/\[\d+:\d+\]/, "")}`);
  }
}

/** Lines that only one has: `-` for the first, `+` for the second. */
export function difference(before: readonly string[], after: readonly string[]): string[] {
  return [...without(before, after).map((line) => `- ${line}`), ...without(after, before).map((line) => `+ ${line}`)];
}

function without(lines: readonly string[], others: readonly string[]): string[] {
  const left = new Map<string, number>();
  for (const line of others) left.set(line, (left.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = left.get(line) ?? 0;
    left.set(line, count - 1);
    return count <= 0;
  });
}

/** The kernel needs milliseconds, but its work waits for a processor on a busy machine. */
const SETTLING_MS = 30_000;

/**
 * Calls `differences` until it returns none, for as long as links may take to come up with their routes. Returns what
 * still differs then.
 */
export async function settled(differences: () => Promise<string[]>): Promise<string[]> {
  const deadline = performance.now() + SETTLING_MS;
  for (let attempt = 0;; attempt++) {
    const late = performance.now() > deadline;
    const left = await differences();
    if (left.length === 0 || late) return left;
    await Bun.sleep(30 + attempt * 10);
  }
}
