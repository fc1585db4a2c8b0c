/** `patchbay del` once more: what is gone already is no error, and what was probably meant is none that was deleted. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { networkFiles } from "../../support/commands.ts";
import { type Machine, openMachine } from "../../support/machine.ts";
import { PATCHBAY } from "../../support/plugins.ts";

let machine: Machine;
beforeAll(async () => {
  machine = await openMachine();
  await machine.container("web1");
});
afterAll(() => machine[Symbol.asyncDispose]());
beforeEach(async () => {
  configure("net", [{ type: "bridge", bridge: "br0", ipam: { type: "host-local", subnet: "10.9.0.0/24" } }]);
  for (const ifName of ["eth0", "net1"]) await patchbay("add", "net", "web1", "-i", ifName);
});

const { directory, configure } = networkFiles(), file = `${directory}/net.conflist`;
const patchbay = (...args: string[]) => machine.run([PATCHBAY, ...args], { env: { NETCONFPATH: directory } });
const links = async () => (await machine.sh("ip -n web1 -br link")).match(/^(eth0|net1)/mg) ?? [];
const path = "/run/netns/web1";
const notAttached = (name: string, more = "") =>
  `patchbay del: "${name}" is not attached to network "net"; no ledger and no cached result names it${more}\n`;

test("a namespace that is there, a path and an ID of its own are exact: DEL succeeds again", async () => {
  const first = JSON.parse((await patchbay("inspect", "net", "web1", "--json")).stdout)[0].containerId;
  await machine.sh("ip netns add web2");
  await patchbay("add", "net", "web2");
  await patchbay("del", "net", "web1");
  await patchbay("del", "net", "web1", "-i", "net1");
  const names = [["web1"], [path], ["pid:999999"], [path, "--container-id", first]];
  for (const [name, ...options] of names) {
    const again = { code: 0, stdout: "", stderr: notAttached(name!) };
    expect(await patchbay("del", "net", name!, ...options)).toEqual(again);
  }
  // Nobody knows whether the name is one that was deleted before, or a slip.
  expect(await patchbay("del", "net", "web3"))
    .toEqual({ code: 1, stdout: "", stderr: notAttached("web3", '; did you mean "web2"?') });
  await patchbay("del", "net", "web2");
});

test("an interface that is named may be gone; one that nobody named is a slip", async () => {
  await patchbay("del", "net", "web1");
  const stderr = 'patchbay del: "web1" is attached to network "net" as net1; say so with --ifname\n';
  expect(await patchbay("del", "net", "web1")).toEqual({ code: 1, stdout: "", stderr });
  expect(await patchbay("del", "net", "web1", "-i", "eth0")).toEqual({
    code: 0,
    stdout: "",
    stderr: 'patchbay del: "web1" is not attached to network "net" as eth0, but as net1\n',
  });
  expect(await links()).toEqual(["net1"]);
});

test("without the network's file, DEL succeeds again", async () => {
  rmSync(file);
  for (const ifName of ["eth0", "net1"]) {
    expect(await patchbay("del", "net", "web1", "-i", ifName)).toMatchObject({ code: 0 });
  }
  expect(await links()).toEqual([]);
  expect(await patchbay("del", "net", "web1")).toEqual({
    code: 0,
    stdout: "",
    stderr: `patchbay del: no net configurations found in ${directory}, and nothing is recorded of it: ` +
      "there is nothing to delete\n",
  });
});

test("a network's name that is like another's is refused, and so is a directory that is not there", async () => {
  expect(await patchbay("del", "nett", "web1")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('did you mean "net"?'),
  });
  rmSync(file);
  // Only records have it now.
  expect(await patchbay("del", "nett", "web1")).toMatchObject({ code: 1 });
  expect(await patchbay("del", "other", "web1", "--config-dir", "/none")).toMatchObject({ code: 1 });
  expect(await patchbay("del", "other", "web1")).toMatchObject({ code: 0 });
  expect(await links()).toEqual(["eth0", "net1"]);
});
