/**
 * The order in which addresses are allocated; requested addresses, quarantine, exhausted and large ranges.
 *
 * Longer than 300 lines: the naive model at the end covers the same behaviour as the examples before it.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { countFree, countLeased, likelyNext, whyNotAvailable } from "../../src/ipam/allocator.ts";
import type { RangeSet } from "../../src/ipam/range.ts";
import { compareAddresses, formatAddress, nextAddress, parseAddress } from "../../src/net/address.ts";
import { add, del, indexPath, leaseDirectory, rangeSet } from "../support/lease-directory.ts";

const failure = (code: number, message: string) => expect.objectContaining({ code, message });

describe("the order of addresses", () => {
  test("starts behind the gateway and goes on behind the last, also when that was released", () => {
    using made = leaseDirectory();
    const set = rangeSet("10.1.0.0/29");
    expect(add(made, set, "c1")).toBe("10.1.0.2");
    expect(add(made, set, "c2")).toBe("10.1.0.3");
    expect(del(made, "c2")).toBe(1);
    expect(add(made, set, "c3")).toBe("10.1.0.4");
    expect(add(made, set, "c4")).toBe("10.1.0.5");
    expect(add(made, set, "c5")).toBe("10.1.0.6");
    expect(add(made, set, "c6")).toBe("10.1.0.3");
    expect(() => add(made, set, "c7")).toThrow(
      failure(999, "no IP addresses available in range set: 10.1.0.1-10.1.0.6"),
    );
  });

  test("follows last_reserved_ip as people or Go's plugin left it", () => {
    using made = leaseDirectory();
    const set = rangeSet("10.1.0.0/24");
    add(made, set, "c1");
    const cursor = join(made.path, "last_reserved_ip.0");
    expect(readFileSync(cursor, "utf8")).toBe("10.1.0.2");
    writeFileSync(cursor, "10.1.0.99");
    expect(add(made, set, "c2")).toBe("10.1.0.100");
    for (const useless of ["10.9.0.1", "10.1.0.50\n", "", "x"]) {
      writeFileSync(cursor, useless);
      expect(add(made, set, `c${useless}`.replace(/\W/g, "_"))).toStartWith("10.1.0.");
    }
    expect(Object.keys(made.files())).toHaveLength(6);
    expect(made.files()).not.toHaveProperty(["10.1.0.51"]);
  });

  test("a cursor for each range set", () => {
    using made = leaseDirectory();
    add(made, rangeSet("10.1.0.0/24"), "c1");
    add(made, rangeSet("10.2.0.0/24"), "c1", { rangeId: "1" });
    expect(readFileSync(join(made.path, "last_reserved_ip.1"), "utf8")).toBe("10.2.0.2");
  });
});

describe("a requested address", () => {
  const set = rangeSet("10.1.0.0/24");

  test("is refused when it is the gateway, or somebody has it", () => {
    using made = leaseDirectory();
    expect(() => add(made, set, "c1", { ip: "10.1.0.1" })).toThrow(
      failure(999, "requested ip 10.1.0.1 is subnet's gateway"),
    );
    add(made, set, "c1", { ip: "10.1.0.9" });
    expect(() => add(made, set, "c2", { ip: "10.1.0.9" })).toThrow(
      failure(999, "requested IP address 10.1.0.9 is not available in range set 10.1.0.1-10.1.0.254"),
    );
    expect(() => add(made, set, "c1", { ip: "10.1.0.9" })).toThrow("is not available");
  });

  test("is refused beforehand in the same words", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    const why = (address: string) => whyNotAvailable(made.path, set, parseAddress(address)!);
    expect(why("10.1.0.1")).toBe("requested ip 10.1.0.1 is subnet's gateway");
    expect(why("10.1.0.2")).toBe("requested IP address 10.1.0.2 is not available in range set 10.1.0.1-10.1.0.254");
    expect(why("10.1.0.3")).toBeUndefined();
  });

  test("is given again once its file was removed by hand", () => {
    using made = leaseDirectory();
    add(made, set, "c1", { ip: "10.1.0.9" });
    unlinkSync(join(made.path, "10.1.0.9"));
    expect(add(made, set, "c2", { ip: "10.1.0.9" })).toBe("10.1.0.9");
    expect(del(made, "c1")).toBe(0);
    expect(made.files()).toEqual({ "10.1.0.9": "c2\r\neth0" });
  });

  test.each([
    ["first", "10.1.0.0"],
    ["last", "10.1.255.255"],
  ])("also as the %s one of a block, when nothing else is free", (_which, only) => {
    using made = leaseDirectory();
    const alone = rangeSet({ subnet: "10.0.0.0/14", rangeStart: only, rangeEnd: only });
    expect(add(made, alone, "c1")).toBe(only);
    unlinkSync(join(made.path, only));
    expect(add(made, alone, "c2")).toBe(only);
  });

  test("may lie anywhere in a /64, and costs one small block there", () => {
    using made = leaseDirectory();
    const large = rangeSet("fd00::/64"), far = "fd00::ffff:ffff:ffff:fffe";
    expect(add(made, large, "c1", { ip: far })).toBe(far);
    expect(add(made, large, "c2", { ip: "fd00::dead:beef:1:2" })).toBe("fd00::dead:beef:1:2");
    expect(() => add(made, large, "c3", { ip: far })).toThrow("is not available");
    expect(add(made, large, "c3")).toBe("fd00::dead:beef:1:3");
    expect([del(made, "c1"), del(made, "c2"), del(made, "c3")]).toEqual([1, 1, 1]);
    expect(made.files()).toEqual({});
  });
});

describe("one attachment has one address of a set", () => {
  const set = rangeSet("10.1.0.0/24");
  const message = "10.1.0.2 has been allocated to c1, duplicate allocation is not allowed";

  test("so a second ADD is refused until DEL", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    expect(() => add(made, set, "c1")).toThrow(failure(999, message));
    expect(add(made, set, "c1", { ifName: "eth1" })).toBe("10.1.0.3");
    del(made, "c1");
    expect(add(made, set, "c1")).toBe("10.1.0.4");
  });

  test("also when the first has a file of the old form", () => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    writeFileSync(join(made.path, "10.1.0.2"), "c1");
    expect(() => add(made, set, "c1")).toThrow(failure(999, message));
  });

  test("but not when the file was removed by hand", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    unlinkSync(join(made.path, "10.1.0.2"));
    expect(add(made, set, "c1")).toBe("10.1.0.3");
  });

  test("also when that is the first of a block", () => {
    using made = leaseDirectory();
    const large = rangeSet("fd00::/64");
    add(made, large, "c1", { ip: "fd00::1000" });
    expect(() => add(made, large, "c1")).toThrow("fd00::1000 has been allocated to c1");
  });

  test("also when Go's plugin made it in a range that is new to the index", () => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    writeFileSync(join(made.path, "fd00::5:1"), "c1\r\neth0");
    expect(() => add(made, rangeSet("fd00::/64"), "c1")).toThrow("fd00::5:1 has been allocated to c1");
  });

  test("and another set does not matter", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    expect(add(made, rangeSet("10.2.0.0/24"), "c1", { rangeId: "1" })).toBe("10.2.0.2");
  });
});

describe("a range that seems exhausted", () => {
  const set = rangeSet("10.1.0.0/29");
  const fill = (made: ReturnType<typeof leaseDirectory>) => ["a", "b", "c", "d", "e"].map((id) => add(made, set, id));

  test("gives out what was released by removing files", () => {
    using made = leaseDirectory();
    fill(made);
    unlinkSync(join(made.path, "10.1.0.4"));
    expect(add(made, set, "f")).toBe("10.1.0.4");
    expect(() => add(made, set, "g")).toThrow("no IP addresses available");
  });

  test("gives out what a process left empty that died over it, and says so", () => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    for (const last of [2, 3, 4, 5, 6]) {
      writeFileSync(join(made.path, `10.1.0.${last}`), last === 3 ? "" : `x${last}`);
    }
    expect(add(made, set, "f")).toBe("10.1.0.3");
    expect(made.reports).toEqual([`removed ${made.path}/10.1.0.3: it is empty, left by a process that died`]);
  });

  test("does not touch what people put there", () => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    for (const last of [2, 3, 4, 5, 6]) writeFileSync(join(made.path, `10.1.0.${last}`), "printer in room 5");
    expect(() => add(made, set, "f")).toThrow("no IP addresses available");
    expect(Object.values(made.files())).toEqual(new Array(5).fill("printer in room 5"));
  });
});

describe("quarantineSeconds", () => {
  const set = rangeSet("10.1.0.0/29");

  test("keeps released addresses from being given out, unless they are requested", () => {
    using made = leaseDirectory({ quarantineSeconds: 3600 });
    for (const id of ["a", "b", "c", "d", "e"]) add(made, set, id);
    del(made, "a");
    del(made, "b");
    expect(() => add(made, set, "f")).toThrow(
      expect.objectContaining({
        code: 11,
        details: expect.stringContaining("2 of them were released less than 3600 s"),
      }),
    );
    expect(add(made, set, "f", { ip: "10.1.0.2" })).toBe("10.1.0.2");
  });

  test("begins with the release, so what was released without it does not rest", () => {
    using made = leaseDirectory();
    for (const id of ["a", "b", "c", "d", "e"]) add(made, set, id);
    del(made, "c");
    const resting = { ...made, options: { ...made.options, quarantineSeconds: 1_000_000_000 } };
    expect(add(resting, set, "f")).toBe("10.1.0.4");
  });

  test("is over some time", () => {
    using made = leaseDirectory({ quarantineSeconds: 3600 });
    for (const id of ["a", "b", "c", "d", "e"]) add(made, set, id);
    del(made, "c");
    const shorter = { ...made, options: { ...made.options, quarantineSeconds: -1 } };
    expect(add(shorter, set, "f")).toBe("10.1.0.4");
  });
});

describe("a large range", () => {
  test("goes on from one block to the next", () => {
    using made = leaseDirectory();
    const set = rangeSet({ subnet: "fd00::/64", rangeStart: "fd00::ffe" });
    expect(["a", "b", "c"].map((id) => add(made, set, id))).toEqual(["fd00::ffe", "fd00::fff", "fd00::1000"]);
    expect(readdirSync(join(made.path, ".patchbay")).sort()).toEqual(["fd00::-116", "fd00::1000-116", "locks"]);
    expect(["a", "b", "c"].map((id) => del(made, id))).toEqual([1, 1, 1]);
  });

  test("does not leave blocks behind on its way", () => {
    using made = leaseDirectory();
    const set = rangeSet("fd00::/64");
    add(made, set, "stays");
    for (let block = 1; block < 100; block++) {
      add(made, set, "passes", { ip: `fd00::${block.toString(16)}:5` });
      del(made, "passes");
    }
    expect(readdirSync(join(made.path, ".patchbay")).length).toBeLessThan(20);
    expect(existsSync(indexPath(made, "fd00::-116"))).toBe(true);
    expect(del(made, "stays")).toBe(1);
  });

  test("that the index knows has no blocks for what Go's plugin leases elsewhere in it", () => {
    using made = leaseDirectory();
    const set = rangeSet("fd00::/64");
    add(made, set, "c1");
    writeFileSync(join(made.path, "fd00::5:1"), "by-go\r\neth0");
    add(made, set, "c2");
    expect(readdirSync(join(made.path, ".patchbay")).sort()).toEqual(["fd00::-116", "locks"]);
  });

  test("of IPv4 wraps round to its start", () => {
    using made = leaseDirectory();
    const set = rangeSet("10.0.0.0/12");
    add(made, set, "first");
    expect(add(made, set, "last", { ip: "10.15.255.254" })).toBe("10.15.255.254");
    expect(add(made, set, "next")).toBe("10.0.0.3");
  });

  test.each([
    ["255.255.255.248/29", "255.255.255.254", "255.255.255.255"],
    [
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:e000/115",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
    ],
  ])("%s ends with the last of all addresses", (subnet, rangeStart, rangeEnd) => {
    using made = leaseDirectory();
    const set = rangeSet({ subnet, rangeStart, rangeEnd });
    expect(["a", "b"].map((id) => add(made, set, id))).toEqual([rangeStart, rangeEnd]);
    expect(likelyNext(made.path, set, "0")).toBeUndefined();
    expect(() => add(made, set, "c")).toThrow("no IP addresses available");
  });
});

test("countFree() counts by the files", () => {
  using made = leaseDirectory();
  const set = rangeSet("10.1.0.0/29", { subnet: "10.2.0.0/30", gateway: "10.2.0.3" });
  expect(countFree(made.path, set)).toBe(5n + 2n);
  add(made, set, "c1");
  add(made, set, "c2", { ip: "10.2.0.2" });
  expect(countFree(made.path, set)).toBe(5n);
  writeFileSync(join(made.path, "10.1.0.1"), "on the gateway's address, which is not given out anyway");
  expect(countFree(made.path, set)).toBe(5n);
  expect(countFree(made.path, rangeSet("fd00::/64"))).toBe(2n ** 64n - 2n);
});

/** What Go's plugin does, with a Map for a directory. */
class Model {
  readonly leases = new Map<string, string>();
  /** Addresses whose file was removed by hand: which may be noticed at once, but need not until it matters. */
  readonly doubtful = new Set<string>();
  last: string | undefined;

  constructor(readonly set: RangeSet) {}

  candidates(): string[] {
    const all = this.set.flatMap((range) => {
      const addresses: Uint8Array[] = [];
      for (let at = range.start; compareAddresses(at, range.end) <= 0; at = nextAddress(at)) addresses.push(at);
      return addresses.map((at) => ({
        text: formatAddress(at),
        isGateway: compareAddresses(at, range.gateway!) === 0,
      }));
    });
    const behind = all.findIndex(({ text }) => text === this.last) + 1;
    return [...all.slice(behind), ...all.slice(0, behind)].filter(({ isGateway }) => !isGateway)
      .map(({ text }) => text);
  }

  free(): string[] {
    return this.candidates().filter((address) => !this.leases.has(address));
  }

  /** The addresses that may be given. */
  add(id: string): (string | undefined)[] {
    if ([...this.leases.values()].includes(id)) return [undefined];
    const free = this.free();
    const firstCertain = free.findIndex((address) => !this.doubtful.has(address));
    return firstCertain >= 0 ? free.slice(0, firstCertain + 1) : free.length > 0 ? free : [undefined];
  }

  take(address: string, id: string): void {
    this.leases.set(address, id);
    this.doubtful.delete(address);
    this.last = address;
  }

  addressesOf(id: string): string[] {
    return [...this.leases].filter(([, owner]) => owner === id).map(([address]) => address);
  }

  del(id: string): number {
    const held = this.addressesOf(id);
    for (const address of held) this.leases.delete(address);
    return held.length;
  }
}

test("allocate() and release() do what the naive model does", () => {
  const sets = [
    rangeSet("10.1.0.0/28"),
    rangeSet("10.1.0.0/30", "10.2.0.0/29"),
    rangeSet({ subnet: "fd00::/64", rangeStart: "fd00::fffa", rangeEnd: "fd00::1:3" }),
    rangeSet({ subnet: "10.1.0.0/24", rangeStart: "10.1.0.250", gateway: "10.1.0.252" }, "10.3.0.0/30"),
  ];
  const id = fc.integer({ min: 0, max: 11 }).map((number) => `c${number}`);
  const step = fc.oneof(
    fc.record({ verb: fc.constant("add"), id, pick: fc.nat(40) }),
    fc.record({ verb: fc.constant("request"), id, pick: fc.nat(40) }),
    fc.record({ verb: fc.constant("del"), id, pick: fc.nat(40) }),
    fc.record({ verb: fc.constant("remove file"), id, pick: fc.nat(40) }),
    fc.record({ verb: fc.constant("make file"), id, pick: fc.nat(40) }),
    fc.record({ verb: fc.constant("del made"), id, pick: fc.nat(40) }),
    fc.record({ verb: fc.constant("remove index"), id, pick: fc.nat(40) }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...sets), fc.array(step, { minLength: 1, maxLength: 60 }), (set, steps) => {
      using made = leaseDirectory();
      const model = new Model(set);
      const attempt = (work: () => string) => {
        try {
          return work();
        } catch {
          return undefined;
        }
      };
      for (const { verb, id, pick } of steps) {
        const all = model.candidates();
        const address = all[pick % all.length]!;
        const path = join(made.path, address);
        switch (verb) {
          case "add": {
            const allowed = model.add(id);
            const given = attempt(() => add(made, set, id));
            expect(allowed).toContain(given);
            if (given !== undefined) model.take(given, id);
            break;
          }
          case "request": {
            const isFree = !model.leases.has(address);
            expect(whyNotAvailable(made.path, set, parseAddress(address)!) === undefined).toBe(isFree);
            expect(attempt(() => add(made, set, id, { ip: address }))).toBe(isFree ? address : undefined);
            if (isFree) model.take(address, id);
            break;
          }
          case "del":
            expect(del(made, id, model.addressesOf(id))).toBe(model.del(id));
            break;
          case "remove file":
            if (!model.leases.delete(address)) break;
            model.doubtful.add(address);
            unlinkSync(path);
            break;
          case "make file":
            if (model.leases.has(address) || !existsSync(made.path)) break;
            writeFileSync(join(made.path, "lock"), "");
            // Not for an owner that ADD is called for: that would be noticed only when the round robin comes by.
            model.leases.set(address, `go-${id}`);
            writeFileSync(path, `go-${id}\r\neth0`);
            break;
          case "del made":
            expect(del(made, `go-${id}`, pick % 2 ? model.addressesOf(`go-${id}`) : [])).toBe(
              model.del(`go-${id}`),
            );
            break;
          case "remove index":
            for (const name of existsSync(made.path) ? readdirSync(join(made.path, ".patchbay")) : []) {
              if (name !== "locks") unlinkSync(indexPath(made, name));
            }
        }
        const files = Object.fromEntries([...model.leases].map(([at, owner]) => [at, `${owner}\r\neth0`]));
        expect(made.files()).toEqual(files);
        const free = model.free(), next = likelyNext(made.path, set, "0");
        expect(next && formatAddress(next)).toBe(free[0]);
        expect([countFree(made.path, set), countLeased(made.path, set)]).toEqual([
          BigInt(free.length),
          model.leases.size,
        ]);
      }
    }),
    { numRuns: 300 },
  );
});
