/**
 * `npm run demo`: attaches two containers to a network with the built binary, in namespaces of their own. Shows what was
 * made, pings between them and to the gateway, prints how long each step took, and shows that nothing is left.
 *
 * The first half runs on the machine and only compares its state before and after. The second half, `--inside`, runs in
 * a network and mount namespace that end with it, however it ends.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { defineTool, runTool } from "../compile/tool.ts";
import { type Attached, diagram, table } from "./drawing.ts";

const root = resolve(import.meta.dir, "..");
const patchbay = join(root, "dist/patchbay");
const NETWORK = "demo", GATEWAY = "10.69.0.1", GATEWAY6 = "fd00:88::1";

export const tool = defineTool({
  name: "demo",
  about: "Attaches two containers to a network in namespaces of their own, as root, and shows what that makes.",
  options: { inside: { type: "boolean" } },
  needs: "all",
  begin: ({ values }) => values.inside ? inside : outside,
});

function outside(): number {
  const before = machineState();
  const script = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && exec "$@"';
  const again = [process.execPath, import.meta.path, "--inside"];
  const unshare = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", script, "sh", ...again];
  const { exitCode } = Bun.spawnSync(unshare, { stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  const same = machineState() === before;
  console.log(
    same
      ? "This machine is as it was: links, addresses, routes, rules and network files compared.\n"
      : "This machine is NOT as it was: its links, addresses, routes, rules or network files differ.\n",
  );
  return exitCode === 0 && same ? 0 : 1;
}

/** What a network plugin could have changed on the machine, as text. */
function machineState(): string {
  const looks = [
    "ip -o link | sed 's/ qlen.*//'",
    "ip -o address | sed 's/ valid_lft.*//'",
    "ip route show table all; ip -6 route show table all | sed 's/ expires.*//'",
    "ip rule; ip -6 rule",
    "nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'",
    "ls -R /run/netns /run/patchbay /var/lib/cni /etc/cni",
  ];
  return looks.map((look) => Bun.spawnSync(["sh", "-c", `${look} 2>&1`]).stdout.toString()).join("\n");
}

function writeNetwork(): void {
  const config = {
    cniVersion: "1.1.0",
    name: NETWORK,
    plugins: [{
      type: "bridge",
      bridge: "demo0",
      isDefaultGateway: true,
      ipMasq: true,
      ipMasqBackend: "nftables",
      ipam: {
        type: "host-local",
        dataDir: "/run/demo/leases",
        ranges: [[{ subnet: "10.69.0.0/24" }], [{ subnet: "fd00:88::/64" }]],
      },
    }],
  };
  mkdirSync("/run/demo/net.d", { recursive: true });
  writeFileSync("/run/demo/net.d/demo.conflist", JSON.stringify(config));
}

function inside(): void {
  writeNetwork();
  const version = output([patchbay, "--version"]).split("\n")[0];
  console.log(`\n${version}: two containers on one bridge, IPv4 and IPv6, masqueraded\n`);

  const containers = ["web", "db"];
  for (const name of containers) output(["ip", "netns", "add", name]);
  const steps: [step: string, ms: number][] = [];
  const attached = containers.map((name): Attached => {
    const { ms, answer } = timed("add", name);
    steps.push([`patchbay add ${NETWORK} /run/netns/${name}`, ms]);
    const result = JSON.parse(answer);
    return {
      name,
      hostLink: result.interfaces[1].name,
      addresses: result.ips.map((ip: { address: string }) => ip.address),
      mac: result.interfaces[2].mac,
    };
  });

  const gateways = output(["sh", "-c", "ip -o address show dev demo0 scope global | awk '{print $4}'"]).trim().split(
    "\n",
  );
  console.log(diagram({ bridge: "demo0", gateways, attached }));
  console.log(table("What was made", thingsMade(attached)));

  const peer = attached[1]!.addresses.map((address) => address.split("/")[0]!);
  const pings: [string, string][] = [
    ["web → db", peer[0]!],
    ["web → db", peer[1]!],
    ["web → gateway", GATEWAY],
    ["web → gateway", GATEWAY6],
  ];
  console.log(table("Ping", pings.map(([way, address]) => [way, address, ping("web", address)])));

  for (const name of containers) {
    steps.push([`patchbay del ${NETWORK} /run/netns/${name}`, timed("del", name).ms]);
  }
  console.log(table("Time of each command, start to end", steps.map(([step, ms]) => [step, `${ms.toFixed(1)} ms`])));

  const left = leftOf(containers);
  if (left.length > 0) throw new Error(`left after DEL: ${left.join("; ")}`);
  console.log(
    "After DEL: no link, address, rule, lease or record of the two is left. The bridge stays for the next container.",
  );
}

/** What is there of the containers. */
function leftOf(containers: readonly string[]): string[] {
  return [
    ...containers.flatMap((name) => linksOf(["ip", "-n", name]).map((link) => `${link} in ${name}`)),
    ...linksOf(["ip"]).filter((link) => link !== "demo0"),
    ...output(["sh", "-c", "nft list ruleset | grep -E '10\\.88\\.0\\.[0-9]+[^/0-9]|fd00:88::[2-9]' || true"]).split(
      "\n",
    ),
    ...output(["sh", "-c", "find /run/patchbay /run/demo/leases -type f -name '*[.:]88*' ! -path '*/.patchbay/*'"])
      .split("\n"),
  ].filter((line) => line !== "");
}

/** Runs one command of the runtime and measures the whole process. Throws its output when it fails. */
function timed(verb: "add" | "del", name: string): { ms: number; answer: string } {
  const options = ["--config-dir", "/run/demo/net.d", "--cache-dir", "/run/demo/cache"];
  const started = performance.now();
  const answer = output([patchbay, verb, ...options, NETWORK, `/run/netns/${name}`]);
  return { ms: performance.now() - started, answer };
}

function thingsMade(attached: Attached[]): string[][] {
  const routes = output(["ip", "-n", "web", "route", "show", "default"]).trim();
  const routes6 = output(["ip", "-n", "web", "-6", "route", "show", "default"]).split(" metric")[0]!.trim();
  const masqueraded = output(["sh", "-c", "nft list ruleset | grep -o 'comment \"id: ' | wc -l"]).trim();
  return [
    ...attached.map(({ name, hostLink, mac }) => [`${name}: eth0`, `veth to ${hostLink} on the host, MAC ${mac}`]),
    ["web: routes", `${routes}; ${routes6}`],
    ["host: forwarding", `IPv4 ${sysctl("ipv4/ip_forward")}, IPv6 ${sysctl("ipv6/conf/all/forwarding")}`],
    ["host: masquerade", `${masqueraded} addresses in nftables maps, behind one rule for each family`],
    [
      "/run/patchbay",
      `${output(["sh", "-c", "find /run/patchbay -type f | wc -l"]).trim()} ledgers: what DEL will undo`,
    ],
  ];
}

function sysctl(key: string): string {
  return output(["cat", `/proc/sys/net/${key}`]).trim() === "1" ? "on" : "off";
}

/** `3 of 3 answered, 0.041 ms`. */
function ping(from: string, address: string): string {
  const said = output(["ip", "netns", "exec", from, "ping", "-c", "3", "-i", "0.2", "-W", "2", "-q", address]);
  const [, sent, received] = said.match(/(\d+) packets transmitted, (\d+) received/)!;
  if (received !== sent) throw new Error(said);
  const average = said.match(/= [\d.]+\/([\d.]+)\//)![1];
  return `${received} of ${sent} answered, ${average} ms on average`;
}

function linksOf(ip: string[]): string[] {
  const links = JSON.parse(output([...ip, "-j", "link"])) as { ifname: string }[];
  return links.map(({ ifname }) => ifname).filter((name) => name !== "lo");
}

function output(words: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(words, { stdout: "pipe", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${words.join(" ")}: exit status ${exitCode}\n${stdout}${stderr}`);
  return stdout.toString();
}

if (import.meta.main) process.exitCode = await runTool(tool);
