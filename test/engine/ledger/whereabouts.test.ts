/** Where the namespace of an attachment is: what shows that a container lives, and what proves nothing. */
import { describe, expect, test } from "bun:test";
import { readLedger } from "../../../src/engine/ledger/ledger.ts";
import { HostView, type Traces, whereabouts } from "../../../src/engine/ledger/whereabouts.ts";
import { cookiesInSight, ownSight } from "../../../src/ffi/netns-in-sight.ts";
import {
  benchForEachTest,
  containerWith,
  hostWith,
  made,
  onTheHost,
  opens,
  owner,
  type Pair,
  recorded,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();

const mac = "02:00:00:00:00:01", farMac = "02:00:00:00:00:0a", another = "02:00:00:00:00:ff";
const pair = { name: "veth1", mac, farMac };

/** Nothing is in sight but what a test says. */
class View extends HostView {
  inSight: string[] = [];
  override isInSight = (cookie: string | undefined) => cookie !== undefined && this.inSight.includes(cookie);
}

const where = (traces: Partial<Traces> = {}, view = new View(false)) =>
  whereabouts({
    records: bench.ledgers().length === 0 ? [] : [readLedger(owner, "test")!],
    found: undefined,
    ...traces,
  }, view);
const found = (cookie?: string) => hostWith(containerWith({}, cookie === undefined ? {} : { cookie }));

describe("what its path leads to", () => {
  test("is its own where a record says so, or nothing else", () => {
    recorded([made("thing a")], { netns: "1" });
    expect(where({ found: found("1") })).toBe("in place");
    expect(where({ found: found("2") })).toBe("gone");
    expect(where({ found: found("2"), isConfirmed: true })).toBe("in place");
    expect(where({ found: undefined, isConfirmed: true })).toBe("gone");
  });

  test("may be another's without a record", () => {
    expect([where({ found: found("1") }), where({ found: found("1"), isConfirmed: true })]).toEqual([
      "unknown",
      "in place",
    ]);
    expect(where()).toBe("gone");
  });

  test("is of no account where the ADD was in another network namespace of the host", () => {
    recorded([made("thing a")], { netns: "1", hostNetns: "another" });
    recorded([made("thing a")], { netns: "1", hostNetns: "host" });
    expect(where({ found: found("1") })).toBe("elsewhere");
  });
});

test("a namespace that is in sight lives, though its path leads elsewhere", () => {
  recorded([made("thing a")], { netns: "1" });
  recorded([made("thing a")], { netns: "2" });
  const view = new View(false);
  view.inSight = ["1"];
  expect([where({}, view), where({ found: found("3") }, view)]).toEqual(["elsewhere", "elsewhere"]);
  view.inSight = ["3"];
  expect(where({}, view)).toBe("gone");
});

test("in sight are the namespaces that this process may enter", () => {
  const view = new HostView(), [one] = cookiesInSight();
  expect([view.isInSight(one), view.isInSight(undefined), view.isInSight("none")]).toEqual([
    one !== undefined,
    false,
    false,
  ]);
});

describe("a pair on the host", () => {
  const rows: [what: string, there: Pair, lives: boolean][] = [
    ["is as it was made", pair, true],
    ["has another MAC here", { ...pair, mac: another }, true],
    ["has another MAC in the container", { ...pair, farMac: another }, true],
    ["has a MAC in the container that nobody may see", { ...pair, farMac: "" }, true],
    ["was renamed", { ...pair, name: "veth9" }, true],
    ["has nothing but the name", { name: "veth1", mac: another, farMac: another }, false],
    ["has nothing but the MAC here", { name: "veth9", mac, farMac: another }, false],
    ["has nothing but the MAC in the container", { name: "veth9", mac: another, farMac }, false],
    ["has its other end in a namespace that has ended", { name: "veth1", mac }, false],
    ["is of another kind", { ...pair, kind: "macvlan" }, false],
  ];
  test.each(rows)("%s", (_, there, lives) => {
    onTheHost.pairs = () => [{ name: "veth0", mac: another, farMac: another }, there];
    recorded([made("thing a"), made("link b", { end: pair })]);
    expect(where()).toBe(lives ? "elsewhere" : "gone");
  });

  test("whose MAC in the container was not known is known by its name, or by its MAC here", () => {
    recorded([made("link b", { end: { ...pair, farMac: "" } })]);
    for (
      const [there, lives] of [[pair, true], [{ ...pair, name: "veth9" }, true], [
        { ...pair, mac: another },
        false,
      ]] as const
    ) {
      onTheHost.pairs = () => [there];
      expect(where()).toBe(lives ? "elsewhere" : "gone");
    }
  });

  test("that has no MAC here is not known by that", () => {
    recorded([made("link b", { end: { ...pair, mac: "" } })]);
    for (
      const [there, lives] of [[{ ...pair, mac: "" }, true], [{ ...pair, name: "veth9", mac: "" }, false]] as const
    ) {
      onTheHost.pairs = () => [there];
      expect(where()).toBe(lives ? "elsewhere" : "gone");
    }
  });

  test("counts that the result names", () => {
    onTheHost.pairs = () => [pair];
    expect([where({ hostEnds: [pair] }), where()]).toEqual(["elsewhere", "gone"]);
  });

  test("that is ending is waited for, once", () => {
    let looks = 0;
    onTheHost.pairs = () => looks++ < 2 ? [pair] : [];
    expect(where({ hostEnds: [pair] }, new View())).toBe("gone");
    onTheHost.pairs = () => {
      looks++;
      return [pair];
    };
    const view = new View(false);
    expect([where({ hostEnds: [pair] }, view), where({ hostEnds: [pair] }, view)]).toEqual([
      "elsewhere",
      "elsewhere",
    ]);
  });

  test("is looked for once by a view, and what was opened is closed", () => {
    recorded([made("thing a")], { hostNetns: "host" });
    onTheHost.pairs = () => [pair];
    const view = new View(false);
    for (let time = 0; time < 2; time++) expect(where({}, view)).toBe("gone");
    expect(opens.map((line) => line.trim())).toEqual(["open", "close", "open", "close"]);
  });

  test("of a specification that is damaged, and of a kind that is not known, proves nothing", () => {
    const damaged = { kind: { kind: "veth" }, spec: { hostIfName: 5 } },
      unknown = { kind: { kind: "of-tomorrow" }, spec: {} };
    recorded([damaged, unknown] as unknown as ReturnType<typeof made>[]);
    expect(where()).toBe("gone");
  });
});

describe("without a pair", () => {
  test("only who sees what ADD saw can tell", () => {
    for (const [sight, expected] of [[ownSight(), "gone"], ["other", "unknown"]] as const) {
      recorded([made("thing a")], { sight, containerId: expected });
      const records = [readLedger({ ...owner, containerId: expected }, "test")!];
      expect(where({ records })).toBe(expected);
      expect(where({ records, hostEnds: [pair] })).toBe("gone");
    }
    recorded([made("thing a")]);
    expect(where()).toBe("gone");
  });
});

test("of which no record says where it is, nothing on the host shows that it is gone", () => {
  expect(where({ netnsPath: "", hostEnds: [pair] })).toBe("unknown");
});

test("a process that has ended says nothing of its container, where no ledger and no pair does", () => {
  expect(where({ records: [], netnsPath: "/proc/1/ns/net" })).toBe("unknown");
  expect(where({ records: [], netnsPath: "/run/netns/gone" })).toBe("gone");
});
