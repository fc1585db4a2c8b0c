/** Paths that a configuration names lead to what they should be, or are refused at once: nothing waits, no device opens. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";
import { patchbayPlugins } from "../support/plugins.ts";

const ways: Record<string, string> = {
  "a FIFO": "mkfifo PATH",
  "a device without an end": "mknod PATH c 1 5",
  "a device that takes everything": "mknod PATH c 1 3",
  "a socket": "perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un(q(PATH))) or die'",
  "a directory": "mkdir PATH",
  "a link to a FIFO": "mkfifo /run/pipe; ln -s /run/pipe PATH",
  "a file that is too large": "truncate -s 2M PATH",
  "nothing": "true",
};
const PATH = "/run/configured";
const put = (machine: Machine, script: string) =>
  machine.sh(`rm -rf ${PATH} /run/pipe; ${script.replaceAll("PATH", PATH)}`);

const subjects = [
  {
    key: "resolvConf",
    conf: { type: "host-local", ipam: { type: "host-local", subnet: "10.1.0.0/24", resolvConf: PATH } },
  },
  { key: "subnetFile", conf: { type: "flannel", subnetFile: PATH } },
  { key: "daemonSocketPath", conf: { type: "dhcp", ipam: { type: "dhcp", daemonSocketPath: PATH } } },
];

test.each(subjects)("$key", async ({ conf }) => {
  await using machine = await openMachine();
  const container = await machine.container("c1"), net = network(machine, conf);
  for (const [what, script] of Object.entries(ways)) {
    await put(machine, script);
    const added = await net.call("ADD", container);
    expect({ what, code: added.code, msg: added.json.msg })
      .toEqual({ what, code: 1, msg: expect.stringContaining(PATH) });
    expect({ what, code: (await net.call("DEL", container)).code }).toEqual({ what, code: 0 });
    expect(
      await machine.sh(
        "mkdir -p /run/patchbay; find /run/patchbay /var/lib/cni -name '*ctr*'; ls /var/lib/cni/networks/net 2>/dev/null || true",
      ),
    )
      .toBe("");
  }
});

test("what is no resolv.conf says nothing: lines that it does not know do not come out", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const ipam = { type: "host-local", subnet: "10.1.0.0/24", resolvConf: PATH };
  const net = network(machine, { type: "host-local", ipam });
  await put(
    machine,
    "printf 'root:$y$secret:19000:0:99999:7:::\\nnobody:*:19000::::::\\n' >/run/real; ln -s /run/real PATH",
  );
  const { code, stdout, stderr } = await net.call("ADD", container);
  expect(code).toBe(0);
  expect(`${stdout}${stderr}`).not.toMatch(/root|secret|nobody|19000/);
  await net.del(container);
});

test("DEL looks through the files below dataDir, and opens nothing else there", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh(`mkdir -p /run/devices/below; cd /run/devices; mkfifo pipe below/pipe 10.1.0.9; mknod zero c 1 5
    mknod null c 1 3; mknod tty c 5 0; mknod disk b 250 250; truncate -s 1M large; ln -s pipe link
    perl -MSocket -e 'socket(S,AF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("sock")) or die'
    printf 'ctr-c1\\r\\neth0' >below/notes`);
  const ipam = { type: "host-local", subnet: "10.1.0.0/24", dataDir: "/run" };
  const traced = ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", "/run/trace"];
  const env = { CNI_COMMAND: "DEL", CNI_CONTAINERID: "ctr-c1", CNI_NETNS: container.netnsPath, CNI_IFNAME: "eth0" };
  const stdin = JSON.stringify({ cniVersion: "1.1.0", name: "devices", type: "host-local", ipam });
  const program = `${patchbayPlugins()}/host-local`;
  const { code } = await machine.run([...traced, program], { stdin, env: { ...env, CNI_PATH: "/nowhere" } });
  expect(code).toBe(0);
  const opened = [...(await machine.sh("cat /run/trace")).matchAll(/"(\/run\/devices[^"]*)"/g)].map(([, path]) =>
    path!
  );
  const files = [...new Set(opened)].filter((path) => !/\.patchbay|\/lock$/.test(path)).sort();
  expect(files).toEqual(["/run/devices", "/run/devices/below", "/run/devices/below/notes", "/run/devices/large"]);
  // The lease was there, whatever its name.
  expect(await machine.sh("ls /run/devices/below")).toBe("pipe\n");
});
