/** inspect: where an attachment is, what of it is compared, and in which order it is shown. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { HostView } from "../../../src/engine/ledger/whereabouts.ts";
import { inOrderOfChain, inspect, isNamespaceGone, placeOfAttachment } from "../../../src/engine/operator/inspect.ts";
import { type CachedAttachment, listAttachments } from "../../../src/engine/operator/known-attachment.ts";
import { EMFILE, SyscallError } from "../../../src/ffi/errno.ts";
import { NEXT_STEP } from "../../../src/engine/ledger/newer.ts";
import { cachedWith, onlyKnown } from "../../support/cached-attachment.ts";
import {
  answerWith,
  benchForEachTest,
  containers,
  containerWith,
  made,
  NETNS,
  opens,
  OWN_NETNS,
  owner,
  pluginOf,
  plugins,
  prevResult,
  recorded,
} from "../../support/engine-bench.ts";

const bench = benchForEachTest();
beforeEach(() => plugins["test"] = pluginOf([made("thing now")]));
afterEach(() => {
  const open = opens.filter((line) => line.startsWith("open ")),
    closed = opens.filter((line) => line.startsWith("close "));
  expect(closed.length).toBe(open.length);
});

const MAC = "02:00:00:00:00:0a", OTHER = "/run/netns/y";

/** The namespaces that the host shows are those of `inSight`. */
class View extends HostView {
  constructor(private readonly inSight: readonly string[] = []) {
    super(false);
  }

  override isInSight = (cookie: string | undefined) => cookie !== undefined && this.inSight.includes(cookie);
}

/** Cached with the result of an ADD there. */
function cachedIn(netnsPath: string, types = ["test"]): CachedAttachment {
  const [outside, inside] = prevResult.interfaces!;
  const interfaces = [outside, { ...inside, sandbox: netnsPath }];
  return cachedWith(types, { prevResult: { ...prevResult, interfaces } }, { netnsPath });
}
const inspected = (cached?: CachedAttachment, view = new View()) => inspect(onlyKnown(cached), "", view);

test("what differs is told with its plugin; all of it has to be right", () => {
  containers[NETNS] = containerWith({});
  recorded(
    [
      made("thing a"),
      made("thing b", { differs: ["one", "two"] }),
      made("addresses c", {
        ips: [{ address: "10.0.0.7/24" }],
      }),
    ],
    {},
    answerWith("veth1"),
  );
  expect(inspected()).toEqual({
    ...owner,
    netnsPath: NETNS,
    names: [],
    state: "differs",
    addresses: ["10.0.0.7/24"],
    ports: [],
    plugins: [{
      plugin: "test",
      madeBy: "patchbay",
      resources: [
        { kind: "thing", what: "thing a", state: "ok", differences: [] },
        { kind: "thing", what: "thing b", state: "differs", differences: ["one", "two"] },
        { kind: "addresses", what: "addresses c", state: "ok", differences: [] },
      ],
    }],
  });
  recorded([made("thing a")], {}, answerWith("veth1"));
  expect(inspected().state).toBe("ok");
});

test("what cannot be compared is not right", () => {
  containers[NETNS] = containerWith({});
  const unknown = { kind: { ...made("thing x").kind, kind: "of-tomorrow" }, spec: {} };
  recorded([unknown, made("thing b", { fails: { verify: "now" } })]);
  const { state, plugins } = inspected();
  expect(state).toBe("differs");
  expect(plugins[0]!.resources).toEqual([
    {
      kind: "of-tomorrow",
      what: "of-tomorrow",
      state: "unknown",
      differences: [NEXT_STEP],
    },
    { kind: "thing", what: "thing b", state: "unknown", differences: ["cannot verify b"] },
  ]);
});

test("a ledger in a newer format is shown, also beside a cached result", () => {
  containers[NETNS] = containerWith({});
  recorded([made("thing a")], { patchbay: 2 }, answerWith("veth1"));
  const { state, plugins } = inspected();
  expect(state).toBe("differs");
  expect(plugins).toEqual([{
    plugin: "test",
    madeBy: "patchbay",
    resources: [{ kind: "format 2", what: "format 2", state: "unknown", differences: [NEXT_STEP] }],
  }]);
});

describe("where it is", () => {
  const rows: [
    what: string,
    container: Parameters<typeof containerWith> | undefined,
    inSight: string[],
    state: string,
  ][] = [
    ["its path leads to its namespace", [{}, { cookie: "1" }], [], "ok"],
    ["its path leads to another one, and its own is in sight", [{}, { cookie: "2" }], ["1"], "elsewhere"],
    ["its path leads to another one, and nothing shows its own", [{}, { cookie: "2" }], ["2"], "gone"],
    ["its path leads nowhere, and it is in sight", undefined, ["1"], "elsewhere"],
    ["its path leads nowhere, and nothing shows it", undefined, [], "gone"],
  ];
  test.each(rows)("%s", (_, container, inSight, state) => {
    if (container !== undefined) containers[NETNS] = containerWith(...container);
    recorded([made("thing a")], { netns: "1" }, answerWith("veth1"));
    const found = inspected(undefined, new View(inSight));
    expect(found).toMatchObject({ ...owner, netnsPath: NETNS, state });
    expect(found.plugins).toHaveLength(state === "ok" ? 1 : 0);
    expect(isNamespaceGone(onlyKnown(), new View(inSight))).toBe(state === "gone");
  });

  test("another host's network namespace is the one to judge that", () => {
    recorded([made("thing a")], { hostNetns: "another" }, answerWith("veth1"));
    expect(inspected().state).toBe("elsewhere");
    containers[NETNS] = containerWith({});
    expect(inspected().state).toBe("elsewhere");
    delete containers[NETNS];
    recorded([made("thing a")], { hostNetns: "host", containerId: "b" }, answerWith("veth1"));
    expect(inspect(listAttachments([], "b")[0]!, "", new View()).state).toBe("gone");
  });

  test("the host's own namespace is no container's", () => {
    recorded([made("thing a")], { netnsPath: OWN_NETNS }, answerWith("veth1"));
    expect(inspected().state).toBe("gone");
  });

  test("of one of the cache alone nobody knows which namespace it is, so it is compared", () => {
    containers[NETNS] = containerWith({});
    expect(inspected(cachedIn(NETNS)).plugins[0]).toMatchObject({ madeBy: "others" });
  });

  test("a path that the cache has counts where the link of its result is", () => {
    recorded([made("thing a")], { netns: "1" }, answerWith("veth1"));
    containers[OTHER] = containerWith({ eth0: MAC }, { cookie: "1", netnsPath: OTHER });
    expect(inspected(cachedIn(OTHER)).state).toBe("ok");
    containers[OTHER] = containerWith({}, { cookie: "2", netnsPath: OTHER });
    expect(inspected(cachedIn(OTHER)).state).toBe("gone");
    containers[NETNS] = containerWith({}, { cookie: "1" });
    expect(inspected(cachedIn(OTHER)).state).toBe("ok");
    delete containers[OTHER];
    expect(inspected(cachedIn(OTHER)).state).toBe("ok");
  });

  test("where parts of it are of another namespace nothing is compared", () => {
    recorded([made("thing a")], { netns: "1", stdin: '{"type":"test"}' }, answerWith("veth1"));
    recorded([made("thing b")], { netns: "2", plugin: "other" }, answerWith("veth1"));
    containers[NETNS] = containerWith({}, { cookie: "1" });
    expect(inspected()).toMatchObject({ state: "elsewhere", plugins: [] });
  });

  test("an attachment without a namespace is not gone, and neither is one that cannot be looked at", () => {
    recorded([made("thing a")], { netnsPath: "" });
    expect(isNamespaceGone(onlyKnown(), new View())).toBe(false);
    expect(opens).toEqual([]);
    recorded([made("thing a")], { containerId: "b", netnsPath: OTHER });
    const [attachment] = listAttachments([], "b");
    Object.defineProperty(containers, OTHER, {
      configurable: true,
      enumerable: true,
      get() {
        throw new SyscallError("open", EMFILE, OTHER);
      },
    });
    expect(isNamespaceGone(attachment!, new View())).toBe(false);
    expect(() => inspect(attachment!, "", new View())).toThrow("too many open files");
  });
});

describe("to a container in a namespace, an attachment is", () => {
  const place = (path: string, cookie?: string) => {
    containers[path] ??= containerWith({}, { ...cookie !== undefined && { cookie }, netnsPath: path });
    return placeOfAttachment(onlyKnown(), path);
  };

  test("left, where nothing shows that its own lives", () => {
    recorded([made("thing a")], { netns: "1" }, answerWith("veth1"));
    expect(place(OTHER, "2")).toBe("left");
  });

  test("here or elsewhere, by the namespace that the ledger records, where another host's judges the rest", () => {
    recorded([made("thing a")], { netns: "1", hostNetns: "another" }, answerWith("veth1"));
    expect([place(OTHER, "1"), place(OWN_NETNS, "1")]).toEqual(["here", "here"]);
    containers[OTHER] = containerWith({}, { cookie: "2", netnsPath: OTHER });
    expect(place(OTHER)).toBe("elsewhere");
    containers[OTHER] = containerWith({}, { netnsPath: OTHER });
    expect(place(OTHER)).toBe("elsewhere");
  });

  test("here, where no ADD recorded its namespace, never", () => {
    recorded([made("thing a")], { hostNetns: "another" }, answerWith("veth1"));
    expect(place(OTHER)).toBe("elsewhere");
  });

  test("by the namespaces themselves, where its path leads to its own", () => {
    recorded([made("thing a")], { netns: "1" }, answerWith("veth1"));
    const [one, another] = [bench.directory, "/"].map((path) => openSync(path, "r")) as [number, number];
    containers[NETNS] = { ...containerWith({}, { cookie: "1" }), netnsFd: one };
    for (const [netnsFd, where] of [[one, "here"], [another, "elsewhere"]] as const) {
      containers[OTHER] = { ...containerWith({}, { cookie: "1", netnsPath: OTHER }), netnsFd };
      expect(place(OTHER)).toBe(where);
    }
    for (const fd of [one, another]) closeSync(fd);
  });
});

describe("the order of a chain", () => {
  const order = (parts: string[], chain: string[]) =>
    inOrderOfChain(parts.map((plugin) => ({ plugin })), { ...onlyKnown(cachedIn(NETNS, chain)) })
      .map(({ plugin }) => plugin).join(" ");
  test.each([
    [["b", "a"], ["a", "b"], "a b"],
    [["x", "b", "a"], ["a", "b"], "a b x"],
    [["x", "a"], [], "x a"],
    [["test", "a"], ["a", "my-test"], "a test"],
    [["a", "test"], ["my-test", "a"], "test a"],
    [["test", "my-test", "a"], ["my-test", "a", "test"], "my-test a test"],
    [["b", "test", "my-test"], ["my-test", "b"], "my-test b test"],
  ])("of %j in %j is %s", (parts, chain, expected) => expect(order(parts, chain)).toBe(expected));

  test("is what inspect shows", () => {
    containers[NETNS] = containerWith({ eth0: MAC });
    recorded([made("thing a")], { plugin: "a", stdin: '{"type":"a"}' }, answerWith("veth1"));
    recorded([made("thing b")], { plugin: "b", stdin: '{"type":"b"}' }, answerWith("veth1"));
    expect(inspected(cachedIn(NETNS, ["b", "a"])).plugins.map(({ plugin }) => plugin)).toEqual(["b", "a"]);
  });
});
