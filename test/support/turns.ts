/**
 * One container and one network whose plugins are ours and Go's in turns, as on a host where somebody changes from one to
 * the other and back. The events, and the state after them as text.
 *
 * Our runtime executes both, with one result cache, as an engine does.
 */
import { type Container, type Machine, openMachine, type Outcome } from "./machine.ts";
import { GO_PLUGINS, PATCHBAY, patchbayPlugins } from "./plugins.ts";

export const EVENTS = [
  "ours ADD",
  "Go ADD",
  "ours DEL",
  "Go DEL",
  "namespace made anew",
  "cache lost",
  "reboot",
] as const;
export type Event = (typeof EVENTS)[number];

export interface Topology {
  name: string;
  plugins: readonly Record<string, unknown>[];
}

const mapped = { portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] };

export interface Stage extends AsyncDisposable {
  readonly machine: Machine;
  /** Returns whether it succeeded; our DEL must succeed. */
  happen(event: Event): Promise<boolean>;
  patchbay(command: "check" | "del"): Promise<Outcome>;
  /** `repair` changes nothing when nothing is wrong. */
  look(command: "inspect" | "repair"): Promise<Outcome>;
  /** The whole state as text, with random values numbered in the order of their appearance. */
  picture(): Promise<string>;
  /** The lines of the host alone, which remain when the container is gone. */
  host(): Promise<string[]>;
  endContainer(): Promise<void>;
}

const wire = "ip link add m0 type veth peer name m1; ip link set m0 up; ip link set m1 up";

export async function openStage({ plugins }: Topology): Promise<Stage> {
  const machine = await openMachine();
  const container = await machine.container("c1");
  const list = { cniVersion: "1.0.0", name: "net", plugins };
  await machine.run(["sh", "-c", `${wire}; mkdir -p /run/net.d; cat >/run/net.d/net.conflist`], {
    stdin: JSON.stringify(list),
  });

  const call = (command: string, pluginPath: string) =>
    machine.run([PATCHBAY, command, "net", container.netnsPath, "--container-id", "ctr"], {
      env: { NETCONFPATH: "/run/net.d", CNI_PATH: pluginPath, CAP_ARGS: JSON.stringify(mapped) },
    });
  const verbs: Partial<Record<Event, [string, string]>> = {
    "ours ADD": ["add", patchbayPlugins()],
    "Go ADD": ["add", GO_PLUGINS],
    "ours DEL": ["del", patchbayPlugins()],
    "Go DEL": ["del", GO_PLUGINS],
  };
  const scripts: Partial<Record<Event, string>> = {
    "namespace made anew": `ip netns del c1; ip netns add c1; ${veths} until [ -z "$(veths)" ]; do sleep 0.01; done`,
    "cache lost": "rm -rf /var/lib/cni/results",
    "reboot": `ip netns del c1; for link in $(ip -br link show | sed "s/[ @].*//"); do
        [ $link = lo ] || ip link del $link 2>/dev/null || true
      done; nft flush ruleset; rm -rf /run/patchbay /run/cni; ip netns add c1; ${wire}`,
  };

  return {
    machine,
    async happen(event) {
      const verb = verbs[event];
      if (verb === undefined) {
        await machine.sh(scripts[event]!);
        return true;
      }
      const { code, stdout, stderr } = await call(...verb);
      if (code !== 0 && event === "ours DEL") throw new Error(`${event}: ${stdout}${stderr}`);
      return code === 0;
    },
    patchbay: (command) => call(command, patchbayPlugins()),
    look: (command) => machine.run([PATCHBAY, command, "net", "ctr", "--json"]),
    picture: async () => numbered(await machine.sh(`${whatIs(container)}\n${texts}`)),
    host: async () =>
      numbered(await machine.sh(`${ofNamespace}\n${files}`)).split("\n").filter((line) => line !== ""),
    endContainer: () =>
      machine.sh(`ip netns del c1; ${veths} until [ -z "$(veths)" ]; do sleep 0.01; done`).then(() => {}),
    [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose](),
  };
}

const veths = "veths() { ip -br link show type veth | grep -v ^m || true; };";
/** Without counters, handles and indexes, and without what depends on a link's carrier, which changes by itself. */
const links = `ip -br addr | sed "s/@[^ ]*//; s/^\\([^ ]* *\\)[A-Z]*/\\1/; s/fe80:[^ ]*//g; s/  */ /g; s/ $//"
ip route | sed "s/ linkdown//; s/ *$//"`;
const ofNamespace = `
${links}
for family in ip ip6; do \${family}tables-save 2>/dev/null | grep -v "^#" | sed "s/\\[[0-9:]*\\]//" || true; done
nft list ruleset | grep -q patchbay_ && nft -s list ruleset | sed -n "/patchbay_/,/^}/p" || true
tc qdisc show | grep -v noqueue || true`;
/** A plugin's own files, such as the address given out last, are not left over from an attachment. */
const files =
  "find /run/patchbay /run/cni /var/lib/cni -type f ! -name 'serve~*' 2>/dev/null | grep -v -e last_reserved -e /lock -e '/\\.' | sort || true";
const texts = `for file in $(${files}); do echo "== $file"; cat $file; echo; done`;

const whatIs = ({ netnsPath }: Container) =>
  `${ofNamespace}
echo "== container"
nsenter --net=${netnsPath} sh -ec '${links}; ip -br link show eth0 2>/dev/null | sed "s/@[^ ]* *[A-Z]* */ /; s/<.*//" || true'`;

/** Names, MACs, addresses and namespaces, each kind by itself. */
const CHOSEN: readonly (readonly [string, RegExp])[] = [
  ["veth", /\bveth[0-9a-f]{8}\b/g],
  ["mac", /\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b/g],
  ["address", /\b10\.20\.0\.(?!0\b|1\b|255\b)\d+\b/g],
  ["namespace", /(?<="(?:netns|hostNetns)":")[0-9a-f]+/g],
];

function numbered(text: string): string {
  for (const [kind, pattern] of CHOSEN) {
    const seen = new Map<string, string>();
    text = text.replace(pattern, (found) => seen.getOrInsertComputed(found, () => `${kind}#${seen.size + 1}`));
  }
  return text;
}
