/** A caller whose working directory has been deleted: the program works there, and DEL leaves nothing. */
import { expect, test } from "bun:test";
import { openMachine } from "../support/machine.ts";
import { environmentOf, PATCHBAY, patchbayPlugins } from "../support/plugins.ts";

const FROM_THERE = ["sh", "-c", 'mkdir /run/lost; cd /run/lost; rmdir /run/lost; exec "$@"', "sh"];

test("from a directory that is gone: a plugin's ADD and DEL, and commands", async () => {
  await using machine = await openMachine();
  const container = await machine.container("c1");
  const ipam = { type: "host-local", subnet: "10.9.0.0/24" };
  const conf = { cniVersion: "1.1.0", name: "net", type: "bridge", bridge: "br0", ipam };
  const call = async (command: string) => {
    const env = environmentOf(patchbayPlugins(), { plugin: "bridge", command, container, conf });
    return await machine.run([...FROM_THERE, `${patchbayPlugins()}/bridge`], { env, stdin: JSON.stringify(conf) });
  };
  expect(await call("VERSION")).toMatchObject({ code: 0, stderr: "" });
  expect(await call("ADD")).toMatchObject({ code: 0, stderr: "" });
  expect(await machine.sh("ls /var/lib/cni/networks/net")).toContain("10.9.0.2");
  expect(await call("DEL")).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await machine.sh("ls /var/lib/cni/networks/net")).not.toContain("10.9.0.2");
  expect(await machine.sh("ip -o link", { in: container })).not.toContain("eth0");
  for (const words of [["version"], ["ls"]]) {
    expect((await machine.run([...FROM_THERE, PATCHBAY, ...words])).stderr).not.toContain("directory was deleted");
  }
});
