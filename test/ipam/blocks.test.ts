/** The index of leases: after a reboot, damaged, missing, or for a subnet that changed. */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { releaseInvalid } from "../../src/ipam/claims.ts";
import { tagOf } from "../../src/ipam/store.ts";
import { exportLeases, importLeases } from "../../src/ipam/take-over.ts";
import { add, del, endBoot, indexPath, leaseDirectory, rangeSet } from "../support/lease-directory.ts";

const set = rangeSet("10.1.0.0/24");
const BLOCK = "10.1.0.0-24";

function change(path: string, work: (bytes: Uint8Array) => void): void {
  const bytes = readFileSync(path);
  work(bytes);
  writeFileSync(path, bytes);
}

describe("leases of an earlier boot", () => {
  test("are free, and their files go", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    add(made, set, "c2");
    endBoot(made);
    expect(add(made, set, "c1")).toBe("10.1.0.4");
    expect(made.files()).toEqual({ "10.1.0.4": "c1\r\neth0" });
    expect(made.reports).toEqual([]);
  });

  test("are free in every block, whichever is opened first", () => {
    using made = leaseDirectory();
    const v6 = rangeSet("fd00::/64");
    add(made, set, "c1");
    add(made, v6, "c1", { rangeId: "1", ip: "fd00::1:5" });
    add(made, v6, "c2", { rangeId: "1" });
    endBoot(made);
    add(made, set, "c3");
    expect(made.files()).toEqual({ "10.1.0.3": "c3\r\neth0" });
  });

  test("also when the network is divided differently now", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    endBoot(made);
    const larger = rangeSet("10.1.0.0/16");
    expect(add(made, larger, "c2")).toBe("10.1.0.3");
    expect(del(made, "c9")).toBe(0);
    expect(made.files()).toEqual({ "10.1.0.3": "c2\r\neth0" });
  });

  test("count as none for DEL, which takes the files away all the same", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    endBoot(made);
    expect(del(made, "c1")).toBe(0);
    expect(made.files()).toEqual({});
  });

  test("stay with keepAcrossReboot, as the configuration of the last ADD had it", () => {
    using made = leaseDirectory({ keep: true });
    add(made, set, "c1");
    endBoot(made);
    const withoutConfiguration = { ...made, options: { ...made.options, keep: false } };
    expect(del(withoutConfiguration, "c9")).toBe(0);
    expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
    endBoot(made);
    expect(add(made, set, "c2")).toBe("10.1.0.3");
    expect(() => add(made, set, "c1")).toThrow("duplicate allocation");
    expect(del(made, "c1")).toBe(1);
  });

  test("but not addresses that a person reserved, and not the order of addresses", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    writeFileSync(join(made.path, "10.1.0.3"), "printer");
    writeFileSync(join(made.path, "10.1.0.9"), "old-form-without-an-interface");
    endBoot(made);
    expect(add(made, set, "c2")).toBe("10.1.0.4");
    expect(Object.keys(made.files())).toEqual(["10.1.0.3", "10.1.0.4", "10.1.0.9"]);
  });

  test("nor what Go's plugin leased that the index had not heard of", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    endBoot(made);
    writeFileSync(join(made.path, "lock"), "");
    writeFileSync(join(made.path, "10.1.0.3"), "by-go\r\neth0");
    add(made, set, "c2");
    expect(made.files()).toEqual({ "10.1.0.3": "by-go\r\neth0", "10.1.0.4": "c2\r\neth0" });
    expect(del(made, "by-go")).toBe(1);
  });
});

describe("a damaged index", () => {
  const damages: [string, (path: string) => void][] = [
    ["empty", (path) => truncateSync(path, 0)],
    ["truncated", (path) => truncateSync(path, 100)],
    ["too long", (path) => writeFileSync(path, new Uint8Array(4096), { flag: "a" })],
    ["zeros", (path) => change(path, (bytes) => bytes.fill(0))],
    ["another file", (path) => writeFileSync(path, "x".repeat(64 + 8 * 256))],
    ["a header with a flipped bit", (path) => change(path, (bytes) => bytes[9]! ^= 4)],
    ["a symbolic link", (path) => (unlinkSync(path), symlinkSync("/etc/passwd", path))],
    ["a directory", (path) => (unlinkSync(path), mkdirSync(path))],
  ];

  describe.each(damages)("%s", (_, damage) => {
    const damaged = () => {
      const made = leaseDirectory();
      add(made, set, "c1");
      add(made, set, "c2");
      damage(indexPath(made, BLOCK));
      return made;
    };

    test("is set aside, reported, and made again from the lease files", () => {
      using made = damaged();
      expect(add(made, set, "c3")).toBe("10.1.0.4");
      expect(made.reports).toEqual([expect.stringContaining(`${BLOCK} is damaged`)]);
      expect(existsSync(indexPath(made, `${BLOCK}.bad`))).toBe(true);
      expect(() => add(made, set, "c1")).toThrow("duplicate allocation");
      expect([del(made, "c1"), del(made, "c2"), del(made, "c3")]).toEqual([1, 1, 1]);
      expect(made.files()).toEqual({});
    });

    test("does not keep DEL from releasing", () => {
      using made = damaged();
      expect(del(made, "c2")).toBe(1);
      expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
    });
  });

  test("keeps one backup", () => {
    using made = leaseDirectory();
    for (const content of ["one", "two", "three"]) {
      add(made, set, content);
      writeFileSync(indexPath(made, BLOCK), content);
    }
    add(made, set, "last");
    expect(readdirSync(join(made.path, ".patchbay")).sort()).toEqual([BLOCK, `${BLOCK}.bad`, "locks"]);
    expect(readFileSync(indexPath(made, `${BLOCK}.bad`), "utf8")).toBe("three");
  });

  test("may say anything behind a sound header: no address is given twice, and each lease can be released", () => {
    const edits = fc.array(fc.record({ at: fc.nat(8 * 256 - 1), byte: fc.integer({ min: 0, max: 255 }) }), {
      minLength: 1,
      maxLength: 400,
    });
    fc.assert(
      fc.property(edits, (edits) => {
        using made = leaseDirectory();
        const small = rangeSet({ subnet: "10.1.0.0/24", rangeEnd: "10.1.0.20" });
        const ids = Array.from({ length: 12 }, (_, number) => `c${number}`);
        const given = ids.map((id) => add(made, small, id));
        change(indexPath(made, BLOCK), (bytes) => edits.forEach(({ at, byte }) => bytes[64 + at] = byte));
        for (let number = 12;; number++) {
          try {
            given.push(add(made, small, `c${number}`));
            ids.push(`c${number}`);
          } catch (error) {
            expect(String(error)).toContain("no IP addresses available");
            break;
          }
        }
        expect(new Set(given).size).toBe(19);
        expect(given).toHaveLength(19);
        ids.forEach((id, at) => expect(del(made, id, [given[at]!])).toBe(1));
        expect(made.files()).toEqual({});
      }),
      { numRuns: 50 },
    );
  });
});

describe("the index", () => {
  test("can be removed at any time", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    rmSync(join(made.path, ".patchbay"), { recursive: true });
    expect(del(made, "c1")).toBe(1);
    add(made, set, "c2");
    rmSync(join(made.path, ".patchbay"), { recursive: true });
    expect(add(made, set, "c3")).toBe("10.1.0.4");
    expect(() => add(made, set, "c2")).toThrow("duplicate allocation");
  });

  test("half-made by a process that died is no obstacle", () => {
    using made = leaseDirectory();
    mkdirSync(join(made.path, ".patchbay"), { recursive: true });
    writeFileSync(indexPath(made, `${BLOCK}.new`), "x".repeat(10_000));
    expect(add(made, set, "c1")).toBe("10.1.0.2");
    expect(readdirSync(join(made.path, ".patchbay")).sort()).toEqual([BLOCK, "locks"]);
  });

  const words = (bytes: Uint8Array) => new Int32Array(bytes.buffer, 64);
  const CLAIMING = -1, timeOf3 = 256 + 3;

  test("does not have an address rest that a process died over before anybody got it", () => {
    using made = leaseDirectory({ quarantineSeconds: 1_000_000_000 });
    const two = rangeSet({ subnet: "10.1.0.0/24", rangeEnd: "10.1.0.3" });
    add(made, two, "c1");
    change(indexPath(made, BLOCK), (bytes) => {
      words(bytes)[3] = tagOf("crashed\r\neth0");
      words(bytes)[timeOf3] = CLAIMING;
    });
    expect(add(made, two, "c2")).toBe("10.1.0.3");
  });

  test("does not say that an address is being claimed that turned out to be another program's", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    writeFileSync(join(made.path, "10.1.0.3"), "by-go\r\neth0");
    expect(add(made, set, "c2")).toBe("10.1.0.4");
    const found = words(readFileSync(indexPath(made, BLOCK)));
    expect([found[3], found[timeOf3]]).toEqual([tagOf("by-go\r\neth0"), 0]);
  });

  test("is for its owner alone, and lies beside files as Go makes them", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    const listing = Bun.spawnSync(["find", made.path, "-printf", "%M %P\n"]).stdout.toString().trim().split("\n");
    expect(listing.sort()).toEqual([
      "-rw------- .patchbay/10.1.0.0-24",
      "-rw------- .patchbay/locks",
      "-rw------- 10.1.0.2",
      "-rw------- last_reserved_ip.0",
      "drwx------ .patchbay",
      "drwxr-xr-x ",
    ]);
  });
});

test("every call closes what it opened and ends what it mapped: a resident makes many", () => {
  using made = leaseDirectory({ quarantineSeconds: 1 });
  const v6 = rangeSet("fd00::/64");
  const opened = () => readdirSync("/proc/self/fd").length;
  const mapped = () => readFileSync("/proc/self/maps", "utf8").split("\n").filter((line) => line.includes(made.path));
  const calls = (id: string) => {
    add(made, set, id);
    add(made, v6, id, { rangeId: "1", ip: "fd00::5" });
    writeFileSync(join(made.path, "lock"), "");
    expect(() => add(made, set, id)).toThrow("duplicate allocation");
    expect(del(made, id, ["10.1.0.2"])).toBe(2);
    releaseInvalid(made.options, () => false);
    importLeases(made.options);
    add(made, set, id);
    endBoot(made);
    add(made, set, id);
    truncateSync(indexPath(made, BLOCK), 100);
    expect(del(made, id)).toBe(1);
    exportLeases(made.options);
  };
  calls("c1");
  const before = opened();
  calls("c2");
  expect([opened(), mapped()]).toEqual([before, []]);
});
