/** Names and rules that somebody chose to mislead, or to take long: an answer, or that there is none, and no more. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openTown, type Town } from "./town.ts";

let town: Town;
beforeAll(async () => {
  town = await openTown();
});
afterAll(() => town[Symbol.asyncDispose]());

const OUT = ["web", "198.18.0.2", "tcp/7000"];

test("a name that a shell would run, and a terminal obey, is a word and is escaped", async () => {
  const { machine } = town, name = "a$(id)\x1b[2J;";
  await machine.run(["ip", "-n", "web", "link", "set", "eth0", "down"]);
  await machine.run(["ip", "-n", "web", "link", "set", "eth0", "name", name]);
  await machine.run(["ip", "-n", "web", "link", "set", name, "up"]);
  await machine.run(["ip", "-n", "web", "route", "add", "default", "via", "10.40.0.1", "dev", name]);
  await machine.run([
    "ip",
    "-n",
    "web",
    "neighbour",
    "replace",
    "10.40.0.1",
    "lladdr",
    "02:00:00:00:00:77",
    "dev",
    name,
  ]);
  const { stdout, code } = await town.patchbay(["explain", "web", "198.18.0.2", "tcp/7000"]);
  expect(code).toBe(1);
  // deno-lint-ignore no-control-regex
  expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
  expect(stdout).toContain("a$(id)\\u001b[2J;");
  expect(stdout).toContain("'a$(id)");
  const { said } = await town.explain(OUT);
  expect(said.cause).toMatchObject({ code: "wrong-neighbour" });
  const [{ run }] = said.cause!.mend as [{ run: string }];
  await machine.sh(run);
  await machine.run(["ip", "-n", "web", "link", "set", name, "down"]);
  await machine.run(["ip", "-n", "web", "link", "set", name, "name", "eth0"]);
  await town.patchbay(["repair"]);
  expect(await town.isAnswered(OUT)).toBe(true);
});

test("comments of 255 bytes with control characters", async () => {
  const comment = `\x1b]0;mine\x07${"x".repeat(240)}`;
  await town.machine.run([
    "iptables",
    "-A",
    "FORWARD",
    "-i",
    "shop0",
    "-m",
    "comment",
    "--comment",
    comment,
    "-j",
    "DROP",
  ]);
  const { stdout } = await town.patchbay(["explain", ...OUT]);
  // deno-lint-ignore no-control-regex
  expect(stdout).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
  expect(stdout).toContain("forward-drop");
  await town.reset();
});

test("a hundred thousand elements, five thousand chains, jumps as deep as the kernel has them", async () => {
  const elements = Array.from({ length: 100_000 }, (_, at) => `${20 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}.1`);
  const chains = Array.from({ length: 5000 }, (_, at) => `chain c${at} {\n ip saddr 192.0.2.${at % 250} drop\n}\n`);
  const deep = Array.from(
    { length: 15 },
    (_, at) => `chain d${at} {\n ${at < 1 ? "accept" : `jump d${at - 1}`}\n}\n`,
  );
  const jumps = chains.map((_, at) => `jump c${at}\n`);
  await town.machine.sh("nft -f -", {
    stdin: `table inet big {\nset s {\n type ipv4_addr\n elements = { ${elements.join(", ")} }\n}
      ${chains.join("")}${deep.join("")}
      chain base {\n type filter hook forward priority 5\n ip saddr @s drop\n ${jumps.join("")} jump d14\n}\n}\n`,
  });
  expect(await town.isAnswered(OUT)).toBe(true);
  expect((await town.explain(OUT)).said).toMatchObject({ verdict: "leaves" });
  await town.machine.sh("nft delete table inet big");
});

test("root of a container has more elements than are read, and another set beside them", async () => {
  const rules = async (most: number) => {
    const elements = Array.from({ length: most }, (_, at) => `${20 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}.1`);
    await town.machine.sh("ip netns exec web nft -f -", {
      stdin: `table ip own {\nset few {\n type ipv4_addr\n elements = { 192.0.2.7 }\n}
        set many {\n type ipv4_addr\n elements = { ${elements.join(", ")} }\n}
        chain out {\n type filter hook output priority 0\n ip daddr @many drop\n ip daddr @few drop\n}\n}\n`,
    });
    const explained = (to: string) => town.explain(["web", to, "tcp/7000"]).then(({ said }) => said);
    const answers = [await explained("198.18.0.2"), await explained("192.0.2.7")];
    await town.machine.sh("ip netns exec web nft delete table ip own");
    return answers.map(({ verdict, cause }) => `${verdict} ${cause?.code}`);
  };
  expect(await rules(190_000)).toEqual(["leaves undefined", "stops output-drop"]);
  expect(await rules(300_000)).toEqual(["unknown undecided", "stops output-drop"]);
});

test("rules that change all the time: an answer, or that they do", async () => {
  const changing = town.machine.start([
    "sh",
    "-c",
    "while :; do nft 'add table inet busy; delete table inet busy'; done",
  ]);
  for (let round = 0; round < 10; round++) {
    const { said } = await town.explain(OUT);
    expect([undefined, "rules-unread"]).toContain(said.cause?.code);
  }
  changing.kill();
  await changing.exited;
});

test("root of a container makes links that look like others'", async () => {
  const { machine } = town;
  // Another link is called lo, and the loopback is not; a link above its own has the number of one of the host's.
  await machine.sh(`ip -n web link set lo down; ip -n web link set lo name was; ip -n web link set was up
    ip -n web link add lo type veth peer name other; ip -n web link set lo up; ip -n web link set other up
    ip -n web address add 10.99.0.1/24 dev lo`);
  const [own, other] = await Promise.all(
    [["web", "127.0.0.1", "icmp"], ["web", "10.99.0.9", "icmp"]].map(town.explain),
  );
  expect(own!.said).toMatchObject({ verdict: "arrives" });
  expect(other!.said.steps.map(({ text }) => text)).not.toContain("in web, 10.99.0.9");
  expect(other!.said.verdict).not.toBe("arrives");
  await machine.sh(`ip -n web link delete lo; ip -n web link set was down; ip -n web link set was name lo`);
  await machine.sh("ip -n web link add link eth0 name above type macvlan; ip -n web link set above up");
  await machine.sh("ip -n web address add 10.99.0.1/24 dev above");
  expect((await town.explain(["web", "10.99.0.9", "icmp"])).said).toMatchObject({ text: "by above, to 10.99.0.9" });
  await machine.sh("ip -n web link delete above; ip -n web link set lo up");
});

test("root of a container has rules that jump and branch without an end", async () => {
  const chains = Array.from(
    { length: 15 },
    (_, at) =>
      `chain d${at} {\n ${at < 1 ? "tcp dport 9 drop" : `jump d${at - 1}\n jump d${at - 1}\n jump d${at - 1}`}\n}\n`,
  );
  const ends = Array.from({ length: 60 }, (_, at) => `${at} : 198.18.0.${at + 100}`).join(", ");
  await town.machine.sh("ip netns exec web nft -f -", {
    stdin: `table ip own {\n${chains.join("")}
      chain spread {\n type nat hook output priority -100\n dnat to numgen random mod 60 map { ${ends} }\n}
      chain last {\n type filter hook postrouting priority 0\n jump d14\n}\n}\n`,
  });
  expect((await town.explain(OUT)).said).toMatchObject({ verdict: "unknown" });
  await town.machine.sh("ip netns exec web nft flush ruleset");
});

test("root of a container has a route of which the kernel does not say the link", async () => {
  await town.machine.sh(`ip netns exec web sysctl -qw net.ipv4.nexthop_compat_mode=0
    ip -n web nexthop add id 1 via 10.40.0.1 dev eth0; ip -n web route replace default nhid 1`);
  expect((await town.explain(OUT)).said).toMatchObject({ verdict: "unknown", cause: { code: "undecided" } });
  expect((await town.patchbay(["explain", "--all"])).stdout).toContain("undecided  web → outside");
  await town.machine.sh(`ip netns exec web sysctl -qw net.ipv4.nexthop_compat_mode=1
    ip -n web route replace default via 10.40.0.1; ip -n web nexthop flush`);
});

test("root of a container passes a pair of its own for the host's", async () => {
  const { machine } = town;
  const indexIn = async (netns: string) =>
    Number((await machine.sh(`ip -n ${netns} -o link show eth0`)).split(":")[0]);
  await machine.container("inner");
  await machine.sh(
    `other=$(cat /sys/class/net/$(ip -o link show master shop0 | sed -n 2p | cut -d: -f2 | cut -d@ -f1 | tr -d ' ')/ifindex)
    ip -n far link set eth0 down; ip -n far link set eth0 netns inner
    ip -n far link add eth0 index ${await indexIn("jug")} type veth peer name eth9 index $other netns inner
    ip -n far link set eth0 up; ip -n inner link set eth9 up
    ip -n far address add 10.41.0.2/24 dev eth0; ip -n far route add default via 10.41.0.1`,
  );
  expect((await town.explain(["far", "198.18.0.2", "icmp"])).said).toMatchObject({
    verdict: "unknown",
    cause: { code: "nobody-answers" },
  });
  await machine.sh("ip -n far link delete eth0; ip -n inner link set eth0 netns far");
});

test("the container's namespace goes while it is asked", async () => {
  const { machine } = town;
  await machine.sh("umount /run/netns/jug; rm -f /run/netns/jug");
  const { code, stdout, stderr } = await town.patchbay(["explain", "jug", "outside"]);
  expect([code, stdout + stderr]).toEqual([
    3,
    expect.stringMatching(/namespace of jug is gone|no container "jug" is known/),
  ]);
});
