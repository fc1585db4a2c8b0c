/**
 * Processes that died at any step of ADD or DEL: their leftovers are removed and cost no address. Also release and
 * GC.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holdsLease, releaseInvalid, releaseLease } from "../../src/ipam/claims.ts";
import { tagOf } from "../../src/ipam/store.ts";
import { parseAddress } from "../../src/net/address.ts";
import { add, del, indexPath, type LeaseDirectory, leaseDirectory, rangeSet } from "../support/lease-directory.ts";

const set = rangeSet("10.1.0.0/29");
const BLOCK = "10.1.0.0-29";
const COUNT = 8;
const CLAIMING = -1;

/** The words of the index for one address of 10.1.0.0/29, on disk. */
function word(made: LeaseDirectory, last: number, which: "slot" | "time", value?: number): number {
  const path = indexPath(made, BLOCK);
  const bytes = readFileSync(path);
  const at = 64 + 4 * (last + (which === "slot" ? 0 : COUNT));
  if (value !== undefined) {
    bytes.writeInt32LE(value, at);
    writeFileSync(path, bytes);
  }
  return bytes.readInt32LE(at);
}

const slots = (made: LeaseDirectory) => Array.from({ length: COUNT }, (_, last) => word(made, last, "slot"));
const times = (made: LeaseDirectory) => Array.from({ length: COUNT }, (_, last) => word(made, last, "time"));
const none = new Array<number>(COUNT).fill(0);

const text = "crashed\r\neth0";
const file = (made: LeaseDirectory) => join(made.path, "10.1.0.3");

/** What is left when a process dies between two steps of ADD or DEL for 10.1.0.3; see docs/lease-store.md. */
const crashes: [step: string, isLease: boolean, leave: (made: LeaseDirectory) => void][] = [
  ["ADD, after the slot was taken", false, (made) => {
    word(made, 3, "slot", tagOf(text));
  }],
  ["ADD, after the time was marked", false, (made) => {
    word(made, 3, "slot", tagOf(text));
    word(made, 3, "time", CLAIMING);
  }],
  ["ADD, after the file was made", false, (made) => {
    word(made, 3, "slot", tagOf(text));
    word(made, 3, "time", CLAIMING);
    writeFileSync(file(made), "");
  }],
  ["ADD, after the file was written", true, (made) => {
    word(made, 3, "slot", tagOf(text));
    word(made, 3, "time", CLAIMING);
    writeFileSync(file(made), text);
  }],
  ["ADD, after the time was cleared", true, (made) => {
    word(made, 3, "slot", tagOf(text));
    writeFileSync(file(made), text);
  }],
  ["ADD, after the cursor was written", true, (made) => {
    word(made, 3, "slot", tagOf(text));
    writeFileSync(file(made), text);
    writeFileSync(join(made.path, "last_reserved_ip.0"), "10.1.0.3");
  }],
  ["DEL, after the file was removed", false, (made) => {
    word(made, 3, "slot", tagOf(text));
  }],
  ["DEL, after the time was noted", false, (made) => {
    word(made, 3, "slot", tagOf(text));
    word(made, 3, "time", 4711);
  }],
  ["taking over, after the slot of another program's lease was taken", false, (made) => {
    word(made, 3, "slot", tagOf(text));
    word(made, 3, "time", CLAIMING);
    writeFileSync(file(made), "by-go\r\neth0");
  }],
];

describe.each(crashes)("a process that died in %s", (step, isLease, leave) => {
  const crashed = () => {
    const made = leaseDirectory();
    add(made, set, "first");
    leave(made);
    return made;
  };
  const byGo = step.includes("another program") ? 1 : 0;

  test("leaves nothing that DEL does not remove", () => {
    using made = crashed();
    expect(del(made, "crashed")).toBe(Number(isLease));
    expect(del(made, "crashed")).toBe(0);
    expect(del(made, "by-go")).toBe(byGo);
    expect(Object.keys(made.files())).toEqual(["10.1.0.2"]);
    del(made, "first");
    expect(slots(made)).toEqual(none);
  });

  test("leaves nothing that GC does not remove", () => {
    using made = crashed();
    releaseInvalid(made.options, ({ containerId }) => containerId === "first");
    expect(made.files()).toEqual({ "10.1.0.2": "first\r\neth0" });
    expect(slots(made)).toEqual([0, 0, tagOf("first\r\neth0"), 0, 0, 0, 0, 0]);
    expect(times(made)).not.toContain(CLAIMING);
  });

  test("does not keep ADD from being called again", () => {
    using made = crashed();
    const again = () => add(made, set, "crashed");
    if (isLease) expect(again).toThrow("duplicate allocation");
    else expect(again()).toStartWith("10.1.0.");
    expect(del(made, "crashed")).toBe(1);
  });

  test("costs no address", () => {
    using made = crashed();
    const ids = ["a", "b", "c", "d", "e"];
    const given: string[] = [];
    for (const id of ids) {
      try {
        given.push(add(made, set, id));
      } catch {
        break;
      }
    }
    expect(given.sort()).toEqual(
      ["10.1.0.3", "10.1.0.4", "10.1.0.5", "10.1.0.6"].slice(isLease || byGo ? 1 : 0),
    );
  });

  test("does not keep the address from being requested", () => {
    using made = crashed();
    const request = () => add(made, set, "other", { ip: "10.1.0.3" });
    if (isLease || byGo) expect(request).toThrow("is not available");
    else expect(request()).toBe("10.1.0.3");
  });
});

describe("release()", () => {
  test("finds leases without hints, in every block, also of ranges that the configuration no longer has", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    add(made, rangeSet("10.2.0.0/16"), "c1", { rangeId: "1" });
    add(made, rangeSet("fd00::/64"), "c1", { rangeId: "2" });
    add(made, set, "c1", { ifName: "eth1" });
    expect(del(made, "c1")).toBe(3);
    expect(made.files()).toEqual({ "10.1.0.3": "c1\r\neth1" });
    expect(del(made, "c1")).toBe(0);
  });

  test("finds leases of the old form, but only where none names the interface", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    writeFileSync(join(made.path, "10.1.0.4"), "c1");
    expect(del(made, "c1")).toBe(1);
    expect(made.files()).toEqual({ "10.1.0.4": "c1" });
    expect(del(made, "c1")).toBe(1);
    expect(made.files()).toEqual({});
  });

  test("works in a directory that only Go's plugin knew, and where there is none", () => {
    using made = leaseDirectory();
    expect(del(made, "c1")).toBe(0);
    mkdirSync(join(made.path, "below"), { recursive: true });
    for (const name of ["10.1.0.2", "fd00::2", "odd", "below/10.1.0.9"]) {
      writeFileSync(join(made.path, name), "c1\r\neth0");
    }
    writeFileSync(join(made.path, "10.1.0.3"), "c2\r\neth0");
    writeFileSync(join(made.path, "lock"), "");
    expect(del(made, "c1")).toBe(4);
    expect(made.files()).toEqual({ "10.1.0.3": "c2\r\neth0" });
  });

  test("does not believe a hint that is somebody else's", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    add(made, set, "c2");
    expect(del(made, "c1", ["10.1.0.3", "10.1.0.2", "10.9.9.9"])).toBe(1);
    expect(made.files()).toEqual({ "10.1.0.3": "c2\r\neth0" });
  });

  test("does not remove what somebody else has in the place of a lease removed by hand", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    unlinkSync(join(made.path, "10.1.0.2"));
    writeFileSync(join(made.path, "10.1.0.2"), "by-go\r\neth0");
    expect(del(made, "c1")).toBe(0);
    expect(made.files()).toEqual({ "10.1.0.2": "by-go\r\neth0" });
    expect(slots(made)[2]).toBe(tagOf("by-go\r\neth0"));
    expect(del(made, "by-go")).toBe(1);
  });

  test("waits for Go's plugin before it removes a file: it may be giving the address to somebody", async () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    const seen = join(made.path, "seen");
    const script = `echo locked; sleep 0.3; ls ${made.path} > ${seen}`;
    const go = Bun.spawn(["flock", join(made.path, "lock"), "sh", "-c", script], { stdout: "pipe" });
    await go.stdout.getReader().read();
    expect(del(made, "c1")).toBe(1);
    expect(readFileSync(seen, "utf8")).toContain("10.1.0.2");
    await go.exited;
  });

  test("keeps apart owners whose tags are the same", () => {
    const [one, other] = collision();
    using made = leaseDirectory();
    expect(add(made, set, one)).toBe("10.1.0.2");
    expect(add(made, set, other)).toBe("10.1.0.3");
    expect(del(made, one)).toBe(1);
    expect(made.files()).toEqual({ "10.1.0.3": `${other}\r\neth0` });
    expect(del(made, other)).toBe(1);
  });
});

/** Two containers with the same tag; about 2^16 tries find one. */
function collision(): [string, string] {
  const seen = new Map<number, string>();
  for (let number = 0;; number++) {
    const id = `c${number}`;
    const tag = tagOf(`${id}\r\neth0`);
    const other = seen.get(tag);
    if (other !== undefined) return [other, id];
    seen.set(tag, id);
  }
}

describe("releaseInvalid()", () => {
  const isValid = ({ containerId, ifName }: { containerId: string; ifName: string }) =>
    `${containerId}/${ifName}` === "c1/eth0";

  test("releases what no valid attachment holds", () => {
    using made = leaseDirectory();
    add(made, set, "c1");
    add(made, set, "c1", { ifName: "eth1" });
    add(made, set, "c2");
    add(made, rangeSet("fd00::/64"), "c2", { rangeId: "1" });
    releaseInvalid(made.options, isValid);
    expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
    expect(slots(made).filter((slot) => slot !== 0)).toHaveLength(1);
  });

  test("leaves alone what names no interface, and what people wrote", () => {
    using made = leaseDirectory();
    mkdirSync(made.path);
    const files = { "10.1.0.2": "c9", "10.1.0.3": "printer in room 5" };
    for (const [name, content] of Object.entries(files)) writeFileSync(join(made.path, name), content);
    releaseInvalid(made.options, isValid);
    expect(made.files()).toEqual(files);
  });

  test("works in a directory that only Go's plugin knew, and where there is none", () => {
    using made = leaseDirectory();
    releaseInvalid(made.options, isValid);
    mkdirSync(made.path);
    writeFileSync(join(made.path, "10.1.0.2"), "c1\r\neth0");
    writeFileSync(join(made.path, "10.1.0.3"), "c2\r\neth0");
    releaseInvalid(made.options, isValid);
    expect(made.files()).toEqual({ "10.1.0.2": "c1\r\neth0" });
  });
});

test("releaseLease() releases what its file was read to hold, and nothing that is taken since", () => {
  using made = leaseDirectory();
  const release = (address: string, text: string) => releaseLease(made.options, { address, text });
  add(made, set, "c1");
  writeFileSync(join(made.path, "10.1.0.5"), "printer");
  expect(release("10.1.0.2", "c2\r\neth0")).toBe(false);
  expect(Object.keys(made.files())).toEqual(["10.1.0.2", "10.1.0.5"]);
  expect(release("10.1.0.2", "c1\r\neth0")).toBe(true);
  expect(release("10.1.0.5", "printer")).toBe(true);
  expect(release("10.1.0.6", "c1\r\neth0")).toBe(false);
  expect(slots(made)).toEqual(none);
  expect(made.files()).toEqual({});
});

test("releaseLease() works in a directory that only Go's plugin knew", () => {
  using made = leaseDirectory();
  mkdirSync(made.path);
  writeFileSync(join(made.path, "10.1.0.2"), "c1\r\neth0");
  expect(releaseLease(made.options, { address: "10.1.0.2", text: "c2\r\neth0" })).toBe(false);
  expect(releaseLease(made.options, { address: "10.1.0.2", text: "c1\r\neth0" })).toBe(true);
  expect(made.files()).toEqual({});
});

test("holdsLease() looks at the hints first, and then everywhere", () => {
  using made = leaseDirectory();
  add(made, set, "c1");
  const holds = (containerId: string, ...hints: string[]) =>
    holdsLease(made.options, { containerId, ifName: "eth0" }, hints.map((hint) => parseAddress(hint)!));
  expect(holds("c1", "10.1.0.2")).toBe(true);
  expect(holds("c1")).toBe(true);
  expect(holds("c1", "10.1.0.3")).toBe(true);
  expect(holds("c2", "10.1.0.2")).toBe(false);
  expect(holds("c2")).toBe(false);
});
