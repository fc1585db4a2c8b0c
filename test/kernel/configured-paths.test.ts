/** Paths that a configuration names lead to what they should be, or are refused at once: nothing waits, no device opens. */
import { expect, test } from "bun:test";
import { type Machine, openMachine } from "../support/machine.ts";
import { network } from "../support/network.ts";

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
