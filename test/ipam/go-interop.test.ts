/** Go's host-local and ours share one lease directory, in turns and at the same time. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { releaseInvalid } from "../../src/ipam/claims.ts";
import { exportLeases, importLeases } from "../../src/ipam/take-over.ts";
import { add, del, type LeaseDirectory, leaseDirectory, rangeSet } from "../support/lease-directory.ts";
import { GO_PLUGINS } from "../support/plugins.ts";
import { random } from "../support/random.ts";

const GO = join(GO_PLUGINS, "host-local");
const subnet = "10.1.0.0/28";
const set = rangeSet(subnet);
const TIMEOUT_MS = 300_000;

interface GoAnswer {
  address?: string;
  message?: string;
}

async function go({ path }: LeaseDirectory, command: string, id: string, of = subnet): Promise<GoAnswer> {
  const conf = {
    cniVersion: "1.0.0",
    name: "net",
    type: "bridge",
    ipam: { type: "host-local", subnet: of, dataDir: path.slice(0, path.lastIndexOf("/")) },
  };
  const child = Bun.spawn([GO], {
    stdin: new TextEncoder().encode(JSON.stringify(conf)),
    stdout: "pipe",
    stderr: "inherit",
    env: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: id,
      CNI_NETNS: "/nowhere",
      CNI_IFNAME: "eth0",
      CNI_PATH: GO_PLUGINS,
    },
  });
  const text = await child.stdout.text();
  await child.exited;
  if (text === "") return {};
  const { ips, msg } = JSON.parse(text);
  return { address: ips?.[0].address.split("/")[0], message: msg };
}

describe.if(existsSync(GO))("with Debian's host-local", () => {
  test("its leases are ours at once: they are not given again, not twice to one, and can be released", async () => {
    using made = leaseDirectory();
    for (const id of ["g1", "g2", "g3"]) await go(made, "ADD", id);
    expect(add(made, set, "c1")).toBe("10.1.0.5");
    expect(() => add(made, set, "g2")).toThrow(
      "10.1.0.3 has been allocated to g2, duplicate allocation is not allowed",
    );
    expect(() => add(made, set, "c2", { ip: "10.1.0.4" })).toThrow("is not available");
    expect(del(made, "g1")).toBe(1);
    expect(del(made, "g3", ["10.1.0.4"])).toBe(1);
    expect(made.files()).toEqual({ "10.1.0.3": "g2\r\neth0", "10.1.0.5": "c1\r\neth0" });
  });

  test("and ours are its", async () => {
    using made = leaseDirectory();
    for (const id of ["c1", "c2", "c3"]) add(made, set, id);
    expect(await go(made, "ADD", "g1")).toEqual({ address: "10.1.0.5" });
    const { message } = await go(made, "ADD", "c2");
    expect(message).toContain("10.1.0.3 has been allocated to c2, duplicate allocation is not allowed");
    await go(made, "DEL", "c1");
    expect(Object.keys(made.files())).toEqual(["10.1.0.3", "10.1.0.4", "10.1.0.5"]);
    expect(add(made, set, "c1")).toBe("10.1.0.6");
  });

  test("each goes on where the other stopped", async () => {
    using made = leaseDirectory();
    const order: (string | undefined)[] = [];
    for (let turn = 0; turn < 4; turn++) {
      order.push((await go(made, "ADD", "g")).address);
      await go(made, "DEL", "g");
      order.push(add(made, set, "c"));
      del(made, "c");
    }
    expect(order).toEqual([2, 3, 4, 5, 6, 7, 8, 9].map((last) => `10.1.0.${last}`));
    expect(made.files()).toEqual({});
  });

  test("IPv6, from and to", async () => {
    using made = leaseDirectory();
    const v6 = "2001:db8::/64";
    expect(await go(made, "ADD", "g1", v6)).toEqual({ address: "2001:db8::2" });
    expect(add(made, rangeSet(v6), "c1")).toBe("2001:db8::3");
    expect(() => add(made, rangeSet(v6), "g1")).toThrow("duplicate allocation");
    expect(await go(made, "ADD", "g2", v6)).toEqual({ address: "2001:db8::4" });
    expect(del(made, "g1")).toBe(1);
    await go(made, "DEL", "c1", v6);
    expect(made.files()).toEqual({ "2001:db8::4": "g2\r\neth0" });
  });

  test("an empty lease file that it left does not cost the address", async () => {
    using made = leaseDirectory();
    await go(made, "ADD", "g1");
    await Bun.write(join(made.path, "10.1.0.3"), "");
    expect(add(made, set, "c1")).toBe("10.1.0.3");
    await Bun.write(join(made.path, "10.1.0.4"), "");
    expect(add(made, set, "c2")).toBe("10.1.0.5");
    importLeases(made.options);
    expect(Object.keys(made.files())).toEqual(["10.1.0.2", "10.1.0.3", "10.1.0.5"]);
    const note = (address: string) => `removed ${made.path}/${address}: it is empty, left by a process that died`;
    expect(made.reports).toEqual([note("10.1.0.3"), note("10.1.0.4")]);
  });

  test("the way home is always open: nothing but its own files is left after an export", async () => {
    using made = leaseDirectory();
    await go(made, "ADD", "g1");
    add(made, set, "c1");
    exportLeases(made.options);
    const names = Bun.spawnSync(["ls", "-A", made.path]).stdout.toString().trim().split("\n");
    expect(names).toEqual(["10.1.0.2", "10.1.0.3", "last_reserved_ip.0", "lock"]);
    expect(readFileSync(join(made.path, "10.1.0.3")).toString()).toBe("c1\r\neth0");
    expect(await go(made, "ADD", "g2")).toEqual({ address: "10.1.0.4" });
    for (const id of ["g1", "c1", "g2"]) await go(made, "DEL", id);
    expect(made.files()).toEqual({});
  });

  test("both at once over 13 addresses: none is given twice, none is lost", async () => {
    using made = leaseDirectory();
    const holders = new Map<string, string>();
    const take = (address: string, id: string) => {
      expect(`${address} of ${holders.get(address)} given to ${id}`).toBe(`${address} of undefined given to ${id}`);
      holders.set(address, id);
    };
    const isExhausted = (message: string) => message.includes("no IP addresses available");

    async function goClient(name: string) {
      for (let round = 0; round < 30; round++) {
        const id = `${name}-${round}`;
        const { address, message } = await go(made, "ADD", id);
        if (address === undefined) {
          expect(isExhausted(message!)).toBe(true);
          continue;
        }
        take(address, id);
        await Bun.sleep(random() * 10);
        holders.delete(address);
        await go(made, round % 3 === 0 ? "DEL" : "CHECK", id);
        if (round % 3 !== 0) expect(del(made, id)).toBe(1);
      }
    }

    async function ourClient(name: string) {
      for (let round = 0; round < 120; round++) {
        const id = `${name}-${round}`;
        try {
          const address = add(made, set, id);
          take(address, id);
          await Bun.sleep(random() * 10);
          holders.delete(address);
          if (round % 5 === 0) await go(made, "DEL", id);
          else expect(del(made, id, round % 2 === 0 ? [address] : [])).toBe(1);
        } catch (error) {
          if (!isExhausted(String(error))) throw error;
          await Bun.sleep(5);
        }
      }
    }

    await Promise.all([
      ...["g1", "g2", "g3", "g4", "g5", "g6"].map(goClient),
      ...["o1", "o2", "o3", "o4", "o5", "o6"].map(ourClient),
    ]);
    expect(made.files()).toEqual({});
    expect(made.reports).toEqual([]);
    releaseInvalid(made.options, () => false);
    const given = Array.from({ length: 13 }, (_, number) => add(made, set, `all-${number}`));
    expect(new Set(given).size).toBe(13);
  }, TIMEOUT_MS);
});
