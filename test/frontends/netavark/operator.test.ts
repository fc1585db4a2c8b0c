/** The commands for operators know what podman attached: by podman's names, and without a file of the network. */
import { expect, test } from "bun:test";
import { openMachine } from "../../support/machine.ts";
import { attach, bridgeNetwork, containerIn, published } from "../../support/netavark/attached.ts";
import { PATCHBAY } from "../../support/plugins.ts";

test("podman's name of a container is taken by inspect, check, repair and del", async () => {
  await using machine = await openMachine();
  const [web1, web2] = [await machine.container(), await machine.container()];
  const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args]);
  for (const [index, container] of [web1, web2].entries()) {
    const input = containerIn([{ network: bridgeNetwork() }], 1 + index, [published(8080 + index, 80)]);
    expect(await attach(machine, "setup", container, input)).toMatchObject({ code: 0 });
  }
  expect((await patchbay("inspect", "net8", "web1")).stdout).toMatch(/^.* web1 .* 10\.88\.0\.11/m);
  expect(await patchbay("check", "net8", "web1")).toEqual({ code: 0, stdout: "", stderr: "" });

  await machine.sh("nft flush map ip patchbay_localhost users");
  for (const container of ["web1", "02".repeat(6)]) {
    const stderr = expect.stringContaining("podman8 is not used by the container in map users");
    expect(await patchbay("check", "net8", container)).toMatchObject({ code: 1, stderr });
  }
  expect(await patchbay("repair", "net8", "web1")).toMatchObject({ code: 0 });
  expect([(await patchbay("check", "net8", "web1")).code, (await patchbay("check", "net8", "web2")).code]).toEqual([
    0,
    1,
  ]);

  const unknown = expect.stringMatching(/"wed1" is not attached to network "net8".*; did you mean "web1"\?/);
  expect(await patchbay("check", "net8", "wed1")).toMatchObject({ code: 1, stderr: unknown });
  expect(await patchbay("del", "net8", "web1")).toMatchObject({ code: 0 });
  const isAttached = async () =>
    (await Promise.all([web1, web2].map((one) => machine.run(["ip", "link", "show", "eth0"], { in: one }))))
      .map(({ code }) => code === 0);
  expect(await isAttached()).toEqual([false, true]);
});

/** The container's own address stays, behind, and so does its default route. */
const IN_FRONT: [family: 4 | 6, how: string, says: string][] = [
  [
    4,
    "ip address del 10.88.0.11/24 dev eth0; ip address add 10.88.0.55/24 dev eth0; " +
    "ip address add 10.88.0.11/24 dev eth0; ip route add default via 10.88.0.1 dev eth0 metric 100",
    "eth0 sends as 10.88.0.55, an address of others, not as 10.88.0.11",
  ],
  [
    6,
    "ip address add fd00:8::55/64 dev eth0 nodad",
    "eth0 sends as fd00:8::55, an address of others, not as fd00:8::11",
  ],
  [
    4,
    "ip route prepend default via 10.88.0.77 dev eth0 onlink metric 100",
    "a route of others, 0.0.0.0/0 via 10.88.0.77 metric 100, is in front of 0.0.0.0/0 via 10.88.0.1 metric 100",
  ],
];

test.each(IN_FRONT)(
  "what others put in front of podman's route of IPv%i is told, and put behind: %s",
  async (...row) => {
    const [family, how, says] = row;
    await using machine = await openMachine();
    const web = await machine.container(), input = containerIn([{ network: bridgeNetwork() }], 1);
    expect(await attach(machine, "setup", web, input)).toMatchObject({ code: 0 });
    const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args]);
    const way = () => machine.sh(`ip route get ${family === 4 ? "192.0.2.1" : "2001:db8::1"}`, { in: web });
    const right = await way();
    await machine.sh(how, { in: web });
    expect(await way()).not.toBe(right);
    const { code, stderr } = await patchbay("check", "net8", "web1");
    expect({ code, lines: stderr.split("\n").filter((line) => line.includes(says)).length }).toEqual({
      code: 1,
      lines: 1,
    });
    expect(await patchbay("repair", "net8", "web1")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(says),
    });
    expect(await way()).toBe(right);
    expect(await patchbay("check", "net8", "web1")).toMatchObject({ code: 0, stderr: "" });
    expect(await attach(machine, "teardown", web, input)).toMatchObject({ code: 0, stderr: "" });
  },
);

test("the host's route to podman's containers is looked at, and made again", async () => {
  await using machine = await openMachine();
  const web = await machine.container();
  expect(await attach(machine, "setup", web, containerIn([{ network: bridgeNetwork() }], 1))).toMatchObject({
    code: 0,
  });
  const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args]);
  const [subnet] = (await machine.sh("ip route show dev podman8")).split(" ");
  await machine.sh(`ip route del ${subnet} dev podman8`);
  const missing = expect.stringContaining(`the host's route to ${subnet} by podman8 is missing`);
  expect(await patchbay("check", "net8", "web1")).toMatchObject({ code: 1, stderr: missing });
  expect(await patchbay("repair", "net8", "web1")).toMatchObject({ code: 0, stdout: missing });
  expect(await machine.sh("ip route show dev podman8")).toStartWith(`${subnet} `);

  await machine.sh("sysctl -qw net.ipv4.ip_forward=0");
  const off = expect.stringContaining("net.ipv4.ip_forward is not 1");
  expect(await patchbay("check", "net8", "web1")).toMatchObject({ code: 1, stderr: off });
  expect(await patchbay("repair", "net8", "web1")).toMatchObject({ code: 0, stdout: off });
  expect(await machine.sh("cat /proc/sys/net/ipv4/ip_forward")).toBe("1\n");
  await machine.sh("sysctl -qw net.ipv4.conf.podman8.forwarding=0");
  const step = expect.stringContaining("'sysctl -w net.ipv4.conf.podman8.forwarding=1'");
  expect(await patchbay("check", "net8", "web1")).toMatchObject({ code: 1, stderr: step });
});
