/** The choice of the firewall driver, and its line in the log, which netavark's own tests read. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { chooseFirewall } from "../../../../src/frontends/netavark/program/firewall-choice.ts";

/** Calls it in another process, to read its stderr. */
function choose(wanted: string | undefined): { driver: string; line: string } {
  const module = resolve(import.meta.dir, "../../../../src/frontends/netavark/program/firewall-choice.ts");
  const script = `console.log((await import("${module}")).chooseFirewall(${JSON.stringify(wanted)}))`;
  const env = { PATH: process.env["PATH"]!, RUST_LOG: "netavark=info" };
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", script], { env });
  return { driver: stdout.toString().trim(), line: stderr.toString().trim() };
}

test("the driver is the one asked for, and nftables when none is", () => {
  const say = (text: string) => `[INFO  netavark::firewall] ${text}`;
  const nftables = { driver: "nftables", line: say("Using nftables firewall driver") };
  expect(choose(undefined)).toEqual(nftables);
  expect(choose("NFTables")).toEqual(nftables);
  expect(choose("iptables")).toEqual(nftables);
  expect(choose("firewalld")).toEqual({ driver: "firewalld", line: say("Using firewalld firewall driver") });
  expect(choose("None")).toEqual({ driver: "none", line: say("Not using firewall") });
});

test("any other is refused", () => {
  for (const wanted of ["ipfw", "toString", "nft "]) {
    expect(() => chooseFirewall(wanted)).toThrow(`Must provide a valid firewall backend, got ${wanted}`);
  }
});
