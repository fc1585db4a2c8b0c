/** The id of the boot. Who cannot read it does not guess: leases of an earlier boot would count as this one's. */
import { expect, test } from "bun:test";
import { untilGone } from "../support/gone.ts";
import { openMachine } from "../support/machine.ts";
import { cni, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const MISSING = "/proc/sys/kernel/random/boot_id is missing: mount all of /proc";

test("without the id of the boot, no lease is given, and none is taken up", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  await machine.sh("mount -t tmpfs tmpfs /proc/sys/kernel/random");
  const conf = {
    cniVersion: "1.1.0",
    name: "net",
    type: "bridge",
    ipam: { type: "host-local", subnet: "10.1.0.0/24" },
  };
  const answer = await cni(machine, patchbayPlugins(), { plugin: "host-local", command: "ADD", container, conf });
  expect(answer).toMatchObject({ code: 1, json: { msg: expect.stringContaining(MISSING) } });
  const service = await machine.run([PATCHBAY, "dhcp"]);
  expect(service).toMatchObject({ code: 1, stderr: expect.stringContaining(MISSING) });
});

test.each(["an empty file", "the file missing"])(
  "with %s, DEL and gc give leases back by their files alone",
  async (how) => {
    await using machine = await openMachine();
    const leases = () => machine.sh("ls /var/lib/cni/networks/net");
    await machine.sh(`mkdir -p /run/networks; cat >/run/networks/net.conflist`, {
      stdin: JSON.stringify({
        cniVersion: "1.1.0",
        name: "net",
        plugins: [{ type: "bridge", ipam: { type: "host-local", subnet: "10.1.0.0/24" } }],
      }),
    });
    const env = { NETCONFPATH: "/run/networks" },
      run = (...words: string[]) => machine.run([PATCHBAY, ...words], { env });
    for (const name of ["c1", "c2", "c3"]) {
      await machine.container(name);
      expect((await run("add", "net", name)).code).toBe(0);
    }
    await machine.sh(
      how === "an empty file"
        ? "mount --bind /dev/null /proc/sys/kernel/random/boot_id"
        : "mount -t tmpfs tmpfs /proc/sys/kernel/random",
    );
    expect(await run("status", "net")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("mount all of /proc"),
    });
    expect(await run("del", "net", "c1")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("lease index is left"),
    });
    await machine.removeContainer(machine.containers.find(({ name }) => name === "c2")!);
    await untilGone(machine);
    expect((await run("gc", "net", "--gone")).code).toBe(0);
    expect((await leases()).split("\n").filter((name) => name.startsWith("10."))).toEqual(["10.1.0.4"]);
    await machine.sh("umount /proc/sys/kernel/random/boot_id 2>/dev/null || umount /proc/sys/kernel/random");
    await machine.container("c4");
    expect((await run("add", "net", "c4")).code).toBe(0);
    for (const name of ["c3", "c4"]) {
      expect(await run("del", "net", name)).toEqual({
        code: 0,
        stdout: "",
        stderr: "",
      });
    }
    expect(await leases()).not.toMatch(/^10/m);
  },
);
