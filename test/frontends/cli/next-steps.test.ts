/** Errors on the command line say what to do next, and words of other programs what they are here. */
import { beforeAll, describe, expect, test } from "bun:test";
import { networkFiles } from "../../support/commands.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { startResident } from "../../support/resident.ts";

let machine: Machine;
const { directory, configure } = networkFiles();
const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: directory } });

beforeAll(async () => {
  machine = await openMachine();
  configure("full", [{
    type: "bridge",
    bridge: "full",
    ipam: { type: "host-local", ranges: [[{ subnet: "10.1.0.0/24", rangeStart: "10.1.0.2", rangeEnd: "10.1.0.2" }]] },
  }]);
  configure("free", [{
    type: "ptp",
    capabilities: { ips: true },
    ipam: { type: "host-local", subnet: "10.3.0.0/24" },
  }]);
  configure("taken", [{
    type: "bridge",
    bridge: "taken",
    capabilities: { ips: true },
    ipam: { type: "host-local", subnet: "10.1.0.0/24" },
  }]);
  const mac = { type: "bridge", bridge: "macs", capabilities: { mac: true } };
  configure("mac", [mac]);
  configure("twice", [mac, mac]);
  configure("lo", [{ type: "loopback" }]);
  configure("typo", [{ type: "firewal" }]);
  configure("other", [{ type: "calico" }]);
  const firewalld = { type: "firewall", backend: "firewalld" };
  configure("firewalld", [firewalld]);
  const ipam = { type: "host-local", subnet: "10.2.0.0/24" };
  configure("firewalled", [{ type: "bridge", bridge: "walled", ipam }, firewalld]);
  for (const name of ["c1", "c2"]) await machine.container(name);
  expect(await patchbay("add", "full", "c1")).toMatchObject({ code: 0 });
  expect(await patchbay("add", "taken", "c1", "--ip", "10.1.0.2", "-i", "eth1")).toMatchObject({ code: 0 });
  return async () => await machine[Symbol.asyncDispose]();
});

describe("the next step", () => {
  const elsewhere = "--plugin-path or $CNI_PATH names the directories of other plugins";
  const directories =
    "--plugin-path or $CNI_PATH names the directories of plugins; without both, those in patchbay are used";
  const netns = "NETNS is the path of a network namespace, a name of 'ip netns', or pid:N";
  const rule = 'CNI takes letters, digits, "_", "." and "-", with a letter or digit first';
  const cases: [args: string[], says: string, step: string][] = [
    [
      ["add", "full", "c2"],
      "no IP addresses available in range set: 10.1.0.2-10.1.0.2",
      "'patchbay ipam list full' lists who has the addresses; " +
      "'patchbay gc full --gone' gives back those of containers that are gone, and " +
      "'patchbay ipam release full ADDRESS' one whose container nobody knows",
    ],
    [
      ["add", "free", "c2", "--ip", "10.9.0.9"],
      "failed to allocate all requested IPs: 10.9.0.9",
      "'patchbay status free' lists the ranges; a container gets one address of each set of ranges",
    ],
    [
      ["add", "free", "c2", "--ip", "10.3.0.8", "--ip", "10.3.0.9"],
      "failed to allocate all requested IPs: 10.3.0.9",
      "'patchbay status free' lists the ranges; a container gets one address of each set of ranges",
    ],
    [
      ["add", "taken", "c2", "--ip", "10.1.0.2"],
      "requested IP address 10.1.0.2 is not available in range set",
      "'patchbay ipam list taken' lists who has the addresses",
    ],
    ...["add", "plan"].flatMap((command): [string[], string, string][] => [
      [
        [command, "mac", "c2", "--mac", "03:00:00:00:00:01"],
        "; the MAC address 03:00:00:00:00:01 is a group's, and no link's",
        "a link's MAC address has an even first byte and is not all zeros, as in 02:00:00:00:00:09",
      ],
      [
        [command, "twice", "c2"],
        "; an earlier plugin of the network makes it",
        "only one plugin of network twice may make the interface; another network makes another",
      ],
    ]),
    [["add", "free", "/etc/passwd"], 'unknown FS magic on "/etc/passwd"', netns],
    [["plan", "free", "/etc/passwd"], 'unknown FS magic on "/etc/passwd"', netns],
    [
      ["add", "lo", "c2", "--plugin-path", "/nosuch:/nor-this"],
      'failed to find plugin "loopback" in path [/nosuch /nor-this]',
      `/nosuch and /nor-this do not exist; ${directories}`,
    ],
    [["add", "lo", "c2", "--plugin-path", "/etc"], 'failed to find plugin "loopback" in path [/etc]', directories],
    [
      ["add", "lo", "c1", "--container-id", "a/b"],
      "invalid characters in containerID; a/b",
      `${rule}; --container-id chooses another ID`,
    ],
    [
      ["add", "free", "nosuch"],
      'failed to open netns "/run/netns/nosuch"',
      "'ip netns list' lists the namespaces that have names; 'ip netns add nosuch' makes this one",
    ],
    [
      ["add", "free", "/proc/self/ns/net"],
      'CNI_NETNS is "/proc/self/ns/net"',
      "/proc/self/ns/net is the host's own network namespace, and NETNS a container's; 'ip netns add NAME' makes one",
    ],
    ...["a/b", "a b", "../../runtime", "sixteen-letters-"].map((name): [string[], string, string] => [
      ["add", "free", "c2", "-i", name],
      `CNI_IFNAME is "${name}"`,
      '--ifname or $CNI_IFNAME has at most 15 bytes, none of them "/", ":", "%" or white space, as in eth0',
    ]),
    [
      ["plan", "free", "pid:abc"],
      'failed to open netns "/run/netns/pid:abc"',
      "pid:N takes the number of a process, as in pid:4711",
    ],
    [
      ["add", "free", "c1", "--config-dir", "/nosuch"],
      "no net configurations found in /nosuch",
      "--config-dir or $NETCONFPATH names another directory",
    ],
    [["add", "typo", "c1"], '"firewal" is not part of patchbay', `did you mean "firewall"? ${elsewhere}`],
    [["add", "other", "c1"], '"calico" is not part of patchbay', elsewhere],
    [
      ["add", "firewalled", "c2"],
      "firewalld cannot be reached: there is no D-Bus system bus",
      'start firewalld, or set "backend" of the plugin firewall to "iptables" or "nftables"',
    ],
    [
      ["status", "firewalld"],
      'firewall by firewalld: firewalld does not run; "backend": "firewalld" is configured',
      'start firewalld, or set "backend" of the plugin firewall to "iptables" or "nftables"',
    ],
  ];
  test.each(cases)("patchbay %p", async (args, says, step) => {
    const { code, stderr } = await patchbay(...args), lines = stderr.split("\n");
    expect(code).toBe(1);
    expect(lines[0]).toStartWith(`patchbay ${args[0]}: `);
    expect(lines[0]).toContain(says);
    // The step is said once, and last.
    expect(lines.slice(-2)).toEqual([`  ${step}`, ""]);
    expect(lines.filter((line) => line.includes(step))).toHaveLength(1);
  });

  test("a state directory without room", async () => {
    const place = "/run/without-room", env = { NETCONFPATH: directory, PATCHBAY_STATE_DIR: place };
    await machine.sh(`mkdir -m 700 ${place}; mount -t tmpfs -o nr_inodes=1,mode=700 none ${place}`);
    const { stderr } = await machine.run([PATCHBAY, "add", "free", "c2"], { env });
    expect(stderr).toMatch(/no space left on device\n {2}'add' writes down there .*\$PATCHBAY_STATE_DIR, for .*\n$/);
    await machine.sh(`umount ${place}; rmdir ${place}`);
  });

  test("keys of CNI_ARGS that the plugin does not know", async () => {
    const env = { NETCONFPATH: directory, CNI_ARGS: "A=1" };
    expect(await machine.run([PATCHBAY, "add", "free", "c2"], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/unknown args \["A=1"\].*\n {2}"IgnoreUnknown=1" among the pairs of \$CNI_ARGS/),
    });
  });

  test("a process of the host's network, and a container that is gone", async () => {
    const env = { NETCONFPATH: directory };
    const { stderr } = await machine.run(["sh", "-c", `echo $$; exec ${PATCHBAY} add free pid:$$`], { env });
    expect(stderr).toMatch(
      /\n {2}process [0-9]+ is in the host's network namespace; a container's process is in one of its own\n$/,
    );
    await machine.container("short");
    expect(await patchbay("add", "free", "short")).toMatchObject({ code: 0 });
    await machine.sh("ip netns del short");
    const step = "\n  'patchbay inspect free' says whether the namespace is gone; " +
      "then 'patchbay gc free --gone' removes what it left\n";
    expect((await patchbay("check", "free", "short")).stderr).toEndWith(step);
    await patchbay("gc", "free", "--gone");
  });

  test("ls says it for each network, and of a directory without any", async () => {
    const { stdout } = await patchbay("ls");
    expect(stdout).toContain(`is not part of patchbay\n  did you mean "firewall"? ${elsewhere}\n`);
    const none =
      "no networks in /nosuch\n  it does not exist; --config-dir or $NETCONFPATH names another directory\n";
    expect(await patchbay("ls", "--config-dir", "/nosuch")).toEqual({
      code: 1,
      stdout: expect.stringMatching(new RegExp(`${RegExp.escape(none)}$`)),
      stderr: "",
    });
    expect(await patchbay("ls", "--config-dir", "/nosuch", "--json")).toMatchObject({
      code: 1,
      stderr: `patchbay networks: ${none}`,
    });
    // A host without the directory by default has no networks yet.
    const fresh = ["env", "-u", "NETCONFPATH", "unshare", "-m", "sh", "-c"];
    const { code } = await machine.run([...fresh, `mount -t tmpfs t /etc && ${PATCHBAY} ls --cache-dir /nosuch`]);
    expect(code).toBe(0);
  });

  test("without root, for leases that only root may read", async () => {
    const asUser = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", PATCHBAY, "ipam"];
    await machine.sh("chmod 700 /var/lib/cni/networks");
    for (const words of [["list"], ["list", "full"], ["release", "full", "10.1.0.2"], ["import", "full"]]) {
      const { code, stdout, stderr } = await machine.run([...asUser, ...words]);
      expect([words, code, stdout, stderr]).toEqual([
        words,
        1,
        "",
        "patchbay ipam: open /var/lib/cni/networks: permission denied\n" +
        "  this needs root, or a user namespace of its own: uid 1000 has not CAP_NET_ADMIN and CAP_SYS_ADMIN\n",
      ]);
    }
  });

  test("misspelt options and actions", async () => {
    expect((await patchbay("add", "full", "c2", "--port", "80:80")).stderr).toStartWith(
      "patchbay add: unknown option --port; did you mean --ports?\n",
    );
    for (const words of [["--bref"], ["--brie"], ["--briefly"], ["-brief"]]) {
      const { code, stderr } = await patchbay("inspect", ...words);
      const hint = words[0] === "--briefly" ? "" : "; did you mean --brief?";
      expect([code, stderr.split("\n")[0]]).toEqual([2, `patchbay inspect: unknown option ${words[0]}${hint}`]);
    }
    expect((await patchbay("network", "ls")).stderr).toStartWith(
      "patchbay network: network knows remove, not ls; 'patchbay ls' lists networks\n",
    );
    expect((await patchbay("network", "remove")).stderr).toStartWith("patchbay network: network remove needs");
  });

  test("a name that the container has already", async () => {
    const { stderr } = await patchbay("add", "full", "c1", "--container-id", "again");
    expect(stderr).toContain("choose another name (CNI_IFNAME, or --ifname of patchbay)");
  });

  test("ipam of a network that there is not", async () => {
    const says = "/var/lib/cni/networks/ful: no such file or directory; the network has no leases; " +
      'did you mean "full"?\n';
    for (const args of [["list", "ful"], ["release", "ful", "10.1.0.2"], ["import", "ful"], ["export", "ful"]]) {
      expect(await patchbay("ipam", ...args)).toEqual({ code: 1, stdout: "", stderr: `patchbay ipam: ${says}` });
    }
    // One without leases is configured.
    expect(await patchbay("ipam", "list", "lo")).toEqual({ code: 0, stdout: "", stderr: "" });
  });
});

describe("words of other programs", () => {
  const words: [word: string, meant: string][] = [
    ["list", '"ls" or "inspect"'],
    ["show", '"inspect" or "ls"'],
    ["rm", '"del"'],
    ["remove", '"del"'],
    ["delete", '"del"'],
    ["attach", '"add"'],
    ["detach", '"del"'],
    ["ps", '"inspect"'],
    ["prune", '"gc"'],
  ];
  test.each(words)("%s", async (word, meant) => {
    expect(await patchbay(word, "n")).toEqual({
      code: 2,
      stdout: "",
      stderr: `patchbay: unknown command "${word}"; did you mean ${meant}?\nSee 'patchbay help'.\n`,
    });
  });

  const create = 'patchbay: unknown command "create"; did you mean "add"?';
  const podmans = ["create", "create first", "setup c1", "setup a b", "teardown c1"];
  test.each(["by themselves", "through a resident"])("podman's verbs on a terminal are nobody's, %s", async (how) => {
    const resident = how === "through a resident" ? await startResident(machine, 1) : undefined;
    for (const words of podmans) {
      const { code, stdout } = await machine.run(["script", "-qec", `${PATCHBAY} ${words}`, "/dev/null"]);
      expect([words, code, stdout.split("\r\n")[0]]).toEqual([
        words,
        2,
        create.replace("create", words.split(" ")[0]!)
          .replace('"add"', words.startsWith("teardown") ? '"del"' : '"add"'),
      ]);
    }
    // With more words than podman gives, nor without a terminal.
    expect(await patchbay("create", "first")).toMatchObject({ code: 2, stderr: `${create}\nSee 'patchbay help'.\n` });
    expect(JSON.parse((await patchbay("create")).stdout)).toEqual({ error: expect.stringContaining("stdin") });
    resident?.kill();
    await resident?.exited;
  });
});
