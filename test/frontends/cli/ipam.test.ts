/** `patchbay ipam` lists, frees, imports and exports leases. */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { add, type LeaseDirectory, leaseDirectory, rangeSet } from "../../support/lease-directory.ts";
import { PATCHBAY } from "../../support/plugins.ts";
import { runToEnd } from "../../support/run-to-end.ts";

const set = rangeSet("10.1.0.0/24");

function ipam({ path }: LeaseDirectory, ...args: string[]) {
  return runToEnd([PATCHBAY, "ipam", ...args, "--data-dir", dirname(path)], { env: {} });
}

function filled(): LeaseDirectory {
  const made = leaseDirectory();
  for (const id of ["c1", "c2"]) add(made, set, id);
  add(made, set, "c1", { ifName: "eth1", ip: "10.1.0.10" });
  return made;
}

describe("list", () => {
  test("prints who has which address, sorted by address", () => {
    using made = filled();
    writeFileSync(join(made.path, "10.1.0.9"), "printer in room 5");
    expect(ipam(made, "list", "net")).toEqual({
      code: 0,
      stdout: "net  10.1.0.2   c1                   eth0\n" +
        "net  10.1.0.3   c2                   eth0\n" +
        "net  10.1.0.9   (not an attachment)\n" +
        "net  10.1.0.10  c1                   eth1\n",
      stderr: "",
    });
  });

  test("of all networks, as JSON", () => {
    using made = filled();
    mkdirSync(join(dirname(made.path), "empty"));
    writeFileSync(join(dirname(made.path), "a-file"), "");
    const { stdout } = ipam(made, "list", "--json");
    expect(JSON.parse(stdout)).toEqual([
      { network: "net", address: "10.1.0.2", containerId: "c1", ifName: "eth0" },
      { network: "net", address: "10.1.0.3", containerId: "c2", ifName: "eth0" },
      { network: "net", address: "10.1.0.10", containerId: "c1", ifName: "eth1" },
    ]);
  });
});

test("list of a directory that is named and not there", () => {
  using made = filled();
  const none = `${made.path}/none`;
  for (const option of ["--data-dir", "--dhcp-dir"]) {
    const stderr = `patchbay ipam: ${option} ${none}: no such directory\n`;
    expect(runToEnd([PATCHBAY, "ipam", "list", option, none])).toEqual({ code: 1, stdout: "", stderr });
  }
});

describe("release", () => {
  test("releases addresses, and prints who had them", () => {
    using made = filled();
    expect(ipam(made, "release", "net", "10.1.0.2", "10.1.0.77")).toEqual({
      code: 1,
      stdout: "10.1.0.2: released, was c1/eth0\n10.1.0.77: not leased\n",
      stderr: "",
    });
    expect(Object.keys(made.files())).toEqual(["10.1.0.10", "10.1.0.3"]);
  });

  test("releases the addresses of a container, or of one of its interfaces", () => {
    using made = filled();
    expect(ipam(made, "release", "net", "--container", "c1", "--ifname", "eth1").stdout).toStartWith("10.1.0.10:");
    expect(ipam(made, "release", "net", "--container", "c1").code).toBe(0);
    expect(made.files()).toEqual({ "10.1.0.3": "c2\r\neth0" });
    const again = ipam(made, "release", "net", "--container", "c1");
    expect(again).toEqual({
      code: 1,
      stdout: "",
      stderr: `patchbay ipam: container c1 has no address in ${made.path}\n`,
    });
  });

  test("rejects incomplete and wrong arguments", () => {
    using made = filled();
    expect(ipam(made, "release", "net")).toMatchObject({ code: 2, stdout: "" });
    expect(ipam(made, "release")).toMatchObject({ code: 2, stdout: "" });
    expect(ipam(made, "release", "net", "10.1.0")).toMatchObject({ code: 2, stdout: "" });
    expect(ipam(made, "relase", "net").stderr).toContain(
      "ipam knows list, release, import, export, show and check, not relase",
    );
  });
});

test("import takes over from Go's plugin, export hands back, and both report files that are not leases", () => {
  using made = leaseDirectory();
  mkdirSync(made.path);
  writeFileSync(join(made.path, "10.1.0.2"), "c1\r\neth0");
  writeFileSync(join(made.path, "10.1.0.3"), "");
  writeFileSync(join(made.path, "10.1.0.4"), "printer in room 5");
  expect(ipam(made, "import", "net")).toEqual({
    code: 0,
    stdout: `${made.path}: 2 leases indexed\n`,
    stderr: `removed ${made.path}/10.1.0.3: it is empty, left by a process that died\n` +
      `${made.path}/10.1.0.4 does not name an attachment; it stays reserved\n`,
  });
  expect(add(made, set, "c2")).toBe("10.1.0.3");
  expect(ipam(made, "export", "net").stdout).toBe(`${made.path}: 3 leases left to Go's host-local\n`);
  expect(readdirSync(made.path).sort()).toEqual(["10.1.0.2", "10.1.0.3", "10.1.0.4", "last_reserved_ip.0"]);
  expect(existsSync(join(made.path, ".patchbay"))).toBe(false);
});

test("a network that is not there is an error with its path", () => {
  using made = leaseDirectory();
  for (const action of ["import", "export"]) {
    const { code, stderr } = ipam(made, action, "net");
    expect(code).toBe(1);
    expect(stderr).toContain(`${made.path}: no such file or directory`);
  }
});
