/** Events of attachments, from the files of a result cache alone: what each change of them tells, and how it ends. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventsOf, type NetworkEvent } from "../../../src/frontends/library/events.ts";
import { type CacheRecord, removeCache, writeCache } from "../../../src/runtime/cache.ts";

let cache: string, ending: AbortController;
beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), "patchbay-events-"));
  ending = new AbortController();
});
afterEach(() => {
  ending.abort();
  rmSync(cache, { recursive: true, force: true });
});

const result = { cniVersion: "1.0.0", ips: [{ address: "10.1.0.2/24" }] };

function recordOf(containerId: string, more: Partial<CacheRecord> = {}): CacheRecord {
  const named = { network: "net", containerId, ifName: "eth0", netnsPath: `/run/netns/${containerId}` };
  return { ...named, cniArgs: undefined, capabilityArgs: undefined, config: "{}", result, ...more };
}

const write = (...given: Parameters<typeof recordOf>) => writeCache(cache, recordOf(...given));
const remove = (containerId: string) => removeCache(cache, recordOf(containerId));
const watch = (options: Parameters<typeof eventsOf>[1] = {}) =>
  eventsOf(cache, { signal: ending.signal, ...options });

async function next(events: AsyncIterator<NetworkEvent>): Promise<string> {
  const { done, value } = await events.next();
  return done ? "end" : `${value.type} ${value.containerId}`;
}

test("an event has what the record has, and the result as of CNI 1.1", async () => {
  const events = watch();
  const waiting = events.next();
  write("c1");
  const event = { type: "added", network: "net", containerId: "c1", ifName: "eth0", netns: "/run/netns/c1" };
  const newest = { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24" }] };
  expect(await waiting).toEqual({ done: false, value: { ...event, result: newest } } as never);
  // What is deleted is told as it was, and what has no result that can be read without one.
  for (const [name, unreadable] of [["c2", undefined], ["c3", { cniVersion: "9.0.0" }]] as const) {
    write(name, { result: unreadable });
    const netns = `/run/netns/${name}`;
    expect((await events.next()).value).toEqual({ ...event, containerId: name, netns });
  }
  remove("c1");
  expect((await events.next()).value).toEqual({ ...event, type: "deleted", result: newest });
});

test("events that nobody has asked for yet wait in their order; a record that changes is another attachment", async () => {
  write("c1");
  const events = watch();
  write("c2");
  expect(await next(events)).toBe("added c2");
  write("c1", { netnsPath: "/run/netns/other" });
  expect([await next(events), (await events.next()).value.netns]).toEqual(["deleted c1", "/run/netns/other"]);
  // The same text again is nothing new.
  write("c2");
  remove("c2");
  write("c3");
  expect([await next(events), await next(events)]).toEqual(["deleted c2", "added c3"]);
  // What is no record is none, and what was one is deleted when it is none any more.
  writeFileSync(join(cache, "results/rubbish"), "rubbish");
  writeFileSync(join(cache, "results/net-c3-eth0"), "{");
  expect(await next(events)).toBe("deleted c3");
});

test("what is gone again at once is told, too", async () => {
  const events = watch();
  for (const name of ["c1", "c2", "c3", "c4", "c5", "c6"]) {
    write(name);
    expect(await next(events)).toBe(`added ${name}`);
    remove(name);
    expect(await next(events)).toBe(`deleted ${name}`);
  }
});

test("what is there already is told first, if it is asked for", async () => {
  for (const name of ["c1", "c2"]) write(name);
  const [all, later] = [watch({ existing: true }), watch({ existing: false })];
  write("c3");
  expect(await next(later)).toBe("added c3");
  expect([await next(all), await next(all), await next(all)]).toEqual(["added c1", "added c2", "added c3"]);
});

test.each<[what: string, first: readonly string[]]>([["with records", ["c1", "c2"]], ["empty", []]])(
  "a directory that is removed, %s, and made again is watched again",
  async (_what, first) => {
    for (const name of first) write(name);
    const events = watch();
    rmSync(join(cache, "results"), { recursive: true, force: true });
    // Most file systems give it the number of the one before.
    mkdirSync(join(cache, "results"), { mode: 0o700 });
    for (const name of first) expect(await next(events)).toBe(`deleted ${name}`);
    write("c3");
    expect(await next(events)).toBe("added c3");
    remove("c3");
    expect(await next(events)).toBe("deleted c3");
  },
);

test("what has come into the place of the directory is read", async () => {
  for (const name of ["c1", "c2"]) write(name);
  const events = watch();
  renameSync(join(cache, "results"), join(cache, "away"));
  write("c2");
  write("c3");
  expect([await next(events), await next(events)]).toEqual(["deleted c1", "added c3"]);
});

/** What the kernel watches for this process, and the directories that it has open. */
function watches(): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const watched = readFileSync(`/proc/self/fdinfo/${fd}`, "utf8").match(/^inotify wd:\S+ ino:\S+/gm) ?? [];
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(cache) ? [...watched, path] : watched;
    } catch {
      return []; // The one that lists them.
    }
  });
}

test("an iteration that ends tells what came before and no more, and leaves nothing open", async () => {
  const before = watches(), events = watch(), other = watch();
  expect(watches().length).toBeGreaterThan(before.length + 1);
  write("c1");
  write("c2");
  expect([await next(events), await next(other)]).toEqual(["added c1", "added c1"]);
  expect(await next(other)).toBe("added c2");
  const waiting = [next(other), next(other)];
  ending.abort();
  write("c3");
  expect(await Promise.all(waiting)).toEqual(["end", "end"]);
  expect([await next(events), await next(events), await next(events)]).toEqual(["added c2", "end", "end"]);
  expect(watches()).toEqual(before);
  // A signal that was given before is an end, too.
  const late = watch({ existing: true });
  expect([await next(late), await next(late), await next(late)]).toEqual(["added c1", "added c2", "added c3"]);
  expect([await next(late), watches()]).toEqual(["end", before]);
});

test("a program goes on as long as it waits for events, and no longer", async () => {
  const script = `
    import { eventsOf } from "${import.meta.dir}/../../../src/frontends/library/events.ts";
    const events = eventsOf("${cache}", {});
    console.log("watches");
    for await (const { containerId } of events) {
      console.log(containerId);
      break;
    }`;
  const program = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" }),
    reader = program.stdout.getReader();
  const said = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await said()).toBe("watches\n");
  write("c1");
  expect([await said(), await program.exited]).toEqual(["c1\n", 0]);
});

test("a loop that is left ends the iteration, and forgets what came", async () => {
  for (const name of ["c1", "c2"]) write(name);
  const events = watch({ existing: true });
  for await (const event of events) {
    expect(event.containerId).toBe("c1");
    break;
  }
  expect(await events.next()).toEqual({ done: true, value: undefined });
  expect(await events.return!()).toEqual({ done: true, value: undefined });
});

test("what cannot be watched is an error, also later, and once; nothing stays open", async () => {
  const before = watches(), results = join(cache, "results");
  const says = expect.objectContaining({ code: 5, message: expect.stringContaining(`cannot watch ${results}: `) });
  const spoil = () => {
    rmSync(results, { recursive: true, force: true });
    writeFileSync(results, "no directory");
  };
  spoil();
  expect(watch).toThrow(says);
  rmSync(results);
  const [waiting, later] = [watch(), watch()], promised = waiting.next();
  spoil();
  expect(await promised.catch((error) => error)).toEqual(says);
  expect(await next(waiting)).toBe("end");
  expect(await later.next().catch((error) => error)).toEqual(says);
  expect([await next(later), watches()]).toEqual(["end", before]);
});
