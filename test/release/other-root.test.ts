/** Maintainer scripts that run here for another root (dpkg(1), DPKG_ROOT): this machine's systemd and /run are none of its. */
import { expect, test } from "bun:test";
import { script } from "../../release/packages.ts";
import { openMachine } from "../support/machine.ts";

const scripts = [
  ["patchbay.postinst", "configure", "0.1.0"],
  ["patchbay.prerm", "remove"],
  ["patchbay.postrm", "remove"],
  ["patchbay.postrm", "purge"],
] as const;

test("a program in another root may be started by calls, unless systemd is there, and an installation that fails leaves nothing", async () => {
  await using machine = await openMachine();
  const run = async (name: string, verb: string) => {
    const text = script(`release/debian/${name}`, { name: "patchbay", directories: [] });
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", DPKG_ROOT: "/run/root" };
    // deb-systemd-helper says that it is not called from dpkg.
    expect((await machine.run(["sh", "-c", text, name, verb], { env })).code).toBe(0);
    return await machine.sh("find /run/root -path '*patchbay*'");
  };
  const made = "/run/root/usr/lib/patchbay\n/run/root/usr/lib/patchbay/.patchbay-resident\n";
  await machine.sh("mkdir -p /run/root/usr/lib");
  expect(await run("patchbay.preinst", "upgrade")).toBe("");
  expect(await run("patchbay.preinst", "install")).toBe(made);
  expect(await run("patchbay.postrm", "abort-install")).toBe("");
  expect(await run("patchbay.postrm", "abort-install")).toBe("");
  expect(await run("patchbay.preinst", "install")).toBe(made);
  expect(await run("patchbay.postinst", "configure")).toBe(made);
  await machine.sh("mkdir -p /run/root/usr/lib/systemd; touch /run/root/usr/lib/systemd/systemd");
  expect(await run("patchbay.postinst", "configure")).toBe("/run/root/usr/lib/patchbay\n");
  expect(await run("patchbay.postrm", "abort-install")).toBe("");
  expect(await run("patchbay.preinst", "install")).toBe("");
});

/** What the script asks of systemd, and whether it has removed a directory that nothing is in. */
async function doneBy([name, ...args]: readonly string[], DPKG_ROOT?: string) {
  await using machine = await openMachine();
  await machine.sh(`mkdir -p /run/systemd/system /run/patchbay /run/stubs
    for name in systemctl deb-systemd-invoke; do
      printf '#!/bin/sh\\necho "$0 $*" >>/run/asked\\n' >/run/stubs/$name
    done
    printf '#!/bin/sh\\nexit 0\\n' >/run/stubs/deb-systemd-helper; chmod +x /run/stubs/*; touch /run/asked`);
  const text = script(`release/debian/${name}`, { name: "patchbay", directories: [] });
  const env = {
    PATH: "/run/stubs:/usr/sbin:/usr/bin:/sbin:/bin",
    PATCHBAY_REMOVE: "force",
    ...DPKG_ROOT && { DPKG_ROOT },
  };
  const { code, stderr } = await machine.run(["sh", "-c", text, name!, ...args], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const asked = (await machine.sh("cat /run/asked")).split("\n").filter(Boolean).length;
  return { asked: asked > 0, isGone: await machine.sh("[ -d /run/patchbay ] || echo gone") === "gone\n" };
}

for (const call of scripts) {
  test(call.slice(0, 2).join(" "), async () => {
    expect(await doneBy(call, "/run/root")).toEqual({ asked: false, isGone: false });
    const isPurge = call[1] === "purge";
    expect(await doneBy(call)).toEqual({ asked: !isPurge, isGone: isPurge });
  });
}
