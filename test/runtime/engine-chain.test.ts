/**
 * The chain that engines run, in one process: bridge with masquerading, portmap, firewall, tuning. It starts no
 * program but the one that removes links, opens nothing twice and leaves nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { leftSince, type Moment, quietMoment } from "../support/leftovers.ts";
import { type Container, type Machine, openMachine, type Outcome } from "../support/machine.ts";
import { PATCHBAY } from "../support/plugins.ts";

const CAP_ARGS = JSON.stringify({ portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }] });
const plugins = (backend: string) => [
  {
    type: "bridge",
    bridge: "br0",
    isGateway: true,
    ipMasq: true,
    ipMasqBackend: backend,
    ipam: { type: "host-local", ranges: [[{ subnet: "10.60.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] },
  },
  { type: "portmap", backend, capabilities: { portMappings: true } },
  { type: "firewall", backend },
  { type: "tuning", sysctl: { "net.ipv4.conf.IFNAME.arp_filter": "1" }, mac: "02:00:00:00:60:01" },
];

for (const backend of ["iptables", "nftables"]) {
  describe(`by ${backend}`, () => {
    let machine: Machine;
    let directory: string;
    let container: Container;
    let before: Moment;
    const patchbay = (verb: string, tracing: string[] = []): Promise<Outcome> => {
      const args = [...tracing, PATCHBAY, verb, "n", container.netnsPath, "--container-id", "ctr"];
      return machine.run(args, { env: { NETCONFPATH: directory, CAP_ARGS } });
    };
    const traced = async (verb: string, calls: string) => {
      const file = `${directory}/strace`;
      const outcome = await patchbay(verb, ["strace", "-f", "-qq", "-s", "4096", "-e", `trace=${calls}`, "-o", file]);
      expect(outcome).toMatchObject({ code: 0, stderr: "" });
      return (await Bun.file(file).text()).trimEnd().split("\n");
    };

    beforeAll(async () => {
      machine = await openMachine();
      directory = mkdtempSync(`${tmpdir()}/engine-chain-`);
      const list = { cniVersion: "1.0.0", name: "n", plugins: plugins(backend) };
      writeFileSync(`${directory}/n.conflist`, JSON.stringify(list));
      container = await machine.container("c1");
      for (const verb of ["add", "del"]) expect((await patchbay(verb)).code).toBe(0);
      before = await quietMoment(machine);
    });
    afterAll(async () => {
      rmSync(directory, { recursive: true });
      await machine[Symbol.asyncDispose]();
    });

    test("add, check and del start nothing but the reaper, and leave nothing", async () => {
      const programs = async (verb: string) =>
        (await traced(verb, "execve,fork,vfork,clone,clone3"))
          .filter((line) => !line.includes("CLONE_THREAD") && !/resumed>|--- SIG/.test(line))
          .map((line) => /(execve|fork|vfork|clone3?)\((?:"[^"]*", \["([^"]*)")?/.exec(line))
          .map((call) => call?.[2] === undefined ? "child" : call[2] === PATCHBAY ? "patchbay" : call[2])
          .filter((program) => program !== "child");
      expect(await programs("add")).toEqual(["patchbay"]);
      expect(await programs("check")).toEqual(["patchbay"]);
      const ended = await programs("del");
      expect(ended[0]).toBe("patchbay");
      expect(new Set(ended.slice(1))).toEqual(new Set(["patchbay-reaper"]));
      expect(await leftSince(before, machine)).toEqual([]);
    });

    test("a socket for the host, one for its filters and one for the container serve all four plugins", async () => {
      const sockets = async (verb: string) =>
        (await traced(verb, "socket")).map((line) => /NETLINK_\w+/.exec(line)?.[0]).filter(Boolean).sort();
      const once = ["NETLINK_NETFILTER", "NETLINK_ROUTE", "NETLINK_ROUTE"];
      expect(await sockets("add")).toEqual(once);
      // So it asks who else has the port, behind the verbs.
      expect(await sockets("check")).toEqual(["NETLINK_NETFILTER", ...once]);
      // And that of the child that removes the pair.
      expect(await sockets("del")).toEqual([...once, "NETLINK_ROUTE"]);
    });

    test("CHECK accepts what later plugins changed, repair restores what others flushed", async () => {
      const { code, stdout } = await patchbay("add");
      expect(code).toBe(0);
      expect(JSON.parse(stdout).interfaces.at(-1)).toMatchObject({ name: "eth0", mac: "02:00:00:00:60:01" });
      expect(await patchbay("check")).toEqual({ code: 0, stdout: "", stderr: "" });
      const whole = await quietMoment(machine);
      await machine.sh("iptables -F; iptables -t nat -F; nft flush ruleset");
      expect((await patchbay("check")).code).toBe(1);
      const mended = await machine.run([PATCHBAY, "repair", "n"]);
      expect(mended).toMatchObject({ code: 0, stderr: "" });
      for (const what of ["masquerade of 10.60.0", "port 8080/tcp", "forwarding for 10.60.0"]) {
        expect(mended.stdout).toMatch(new RegExp(`mended +${what}`));
      }
      expect(await patchbay("check")).toEqual({ code: 0, stdout: "", stderr: "" });
      expect(await leftSince(whole, machine)).toEqual([]);
      await patchbay("del");
      expect(await leftSince(before, machine)).toEqual([]);
    });
  });
}
