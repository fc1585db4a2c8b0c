/** Events of the package: attachments that come and go, made by whichever program, and an end that leaves nothing behind. */
import { expect, test } from "bun:test";
import { Library } from "../../support/library/installed.ts";
import { attachmentOf, CONFIGURATIONS, machineWithNetwork, options } from "../../support/library/network.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { untilTrue } from "../../support/until-true.ts";

delete process.env.PATCHBAY_TEST_RESIDENT;

interface Seen {
  type: string;
  containerId: string;
  netns: string;
  result?: { ips: { address: string }[] };
}

test.each([["open", false], ["openInThread", true]])(
  "%s: attachments are told when they come and go, whoever makes them",
  async (_, isThreaded) => {
    await using machine = await machineWithNetwork();
    for (const name of ["c1", "c2", "c3"]) await machine.container(name);
    await using library = await Library.open(machine, { options: { ...options, isThreaded } });
    await library.must("add", "net", attachmentOf("c1"));
    await library.call("watch", true);
    const seen = async (count: number): Promise<Seen[]> =>
      await untilTrue(async () => (await library.call("seen")).value, (events) => events.length >= count);
    const { ips } = await library.must("add", "net", attachmentOf("c2"));
    expect(await seen(2)).toEqual([
      expect.objectContaining({
        type: "added",
        containerId: "c1",
        netns: "/run/netns/c1",
        ifName: "eth0",
        network: "net",
      }),
      expect.objectContaining({ type: "added", containerId: "c2", result: expect.objectContaining({ ips }) }),
    ] as never);
    const words = ["--config-dir", CONFIGURATIONS, "--container-id", "c3", "net", "/run/netns/c3"];
    await machine.sh([PATCHBAY, "add", ...words].join(" "));
    await seen(3);
    await machine.sh([PATCHBAY, "del", ...words].join(" "));
    await seen(4);
    await library.must("del", "net", attachmentOf("c1"));
    const events = await seen(5);
    expect(events.slice(2).map(({ type, containerId }) => `${type} ${containerId}`)).toEqual([
      "added c3",
      "deleted c3",
      "deleted c1",
    ]);
    // What is deleted is told as it was.
    expect(events[3]!.result).toEqual(events[2]!.result!);

    // A cache that is removed and made again is watched again.
    await machine.sh("rm -r /var/lib/cni/results");
    await seen(6);
    await library.must("add", "net", attachmentOf("c1"));
    expect((await seen(7)).slice(5).map(({ type, containerId }) => `${type} ${containerId}`)).toEqual([
      "deleted c2",
      "added c1",
    ]);
    await library.must("del", "net", attachmentOf("c1"));
    await seen(8);
    expect((await library.call("unwatch")).error).toBeUndefined();
    await library.must("add", "net", attachmentOf("c3"));
    expect((await seen(8)).length).toBe(8);
    // The process ends by itself: nothing keeps it.
  },
);

test("only what comes later is told, unless asked for; and a directory that cannot be watched is an error", async () => {
  await using machine = await machineWithNetwork();
  await machine.container("c1");
  await using library = await Library.open(machine, { options });
  await library.must("add", "net", attachmentOf("c1"));
  await library.call("watch", false);
  await library.must("del", "net", attachmentOf("c1"));
  const events = await untilTrue(async () => (await library.call("seen")).value, (found) => found.length >= 1);
  expect(events).toEqual([expect.objectContaining({ type: "deleted", containerId: "c1" })]);
  await using other = await Library.open(machine, { options: { ...options, cacheDirectory: "/proc/nothing" } });
  const { error } = await other.call("watch", false);
  expect(error).toMatchObject({
    isCniError: true,
    code: 5,
    message: expect.stringContaining("/proc/nothing/results"),
  });
});
