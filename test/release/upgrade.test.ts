/**
 * What each release wrote is read by this program: while its containers run, after they are gone, and after a boot.
 * docs/versions.md promises it. The stores are as record-stores.ts found them; of names and numbers that another machine,
 * boot or ADD chooses anew, those of now stand in their place.
 */
import { readdirSync } from "node:fs";
import { describe, expect, test } from "bun:test";
import { kindNames } from "../../src/resources/table.ts";
import { leftSince, momentOf } from "../support/leftovers.ts";
import { untilTrue } from "../support/until-true.ts";
import { openStage, type Stage } from "./stage.ts";
import { putStores, readStores, type StoredFile, type Stores, storesIn } from "./stores.ts";

const releases = readdirSync(import.meta.dir).flatMap((name) => /^stores-of-(.*)$/.exec(name)?.[1] ?? []);

/**
 * Kinds of which no release has a record: they are newer, or what they need is not on the machine that records, or it is
 * running there.
 */
const UNRECORDED = [
  ...["lent-link", "ovs-port", "vrf", "vrf-member", "vlan-gateway", "host-copy-dropped", "mac-spoof-check"],
  ...["firewalld-network", "firewalld-ports", "aardvark-names", "sysctl-file", "tx-checksums", "port-isolation"],
];

test("there is a record of a release", () => expect(releases).toContain("0.2.0"));

describe.each(releases)("the stores of %s", (release) => {
  const recorded = storesIn(`${import.meta.dir}/stores-of-${release}`);

  test("have every kind of resource but those that need hardware or other services", () => {
    const kinds = [...recorded].filter(([path]) => path.startsWith("/run/patchbay/")).flatMap((
      [, { bytes }],
    ) => [...text(bytes).matchAll(/^{"kind":"([^"]+)"/gm)]).map(([, kind]) => kind!);
    expect([...new Set(kinds), ...UNRECORDED].sort()).toEqual([...kindNames].sort());
  });

  test("are read while the containers run: everything is as it was made, and DEL leaves nothing", async () => {
    await using stage = await openStage();
    const { machine, patchbay } = stage;
    await stage.startDhcp();
    // Bridges, forwarding and base chains are everybody's, and stay.
    await stage.attachAll();
    await takeAllAway(stage);
    const moment = await momentOf(machine);
    // The round robin begins anew, so the addresses are those of the record.
    await machine.sh("rm -r /var/lib/cni/networks");
    await stage.attachAll();
    const listed = await leasesOf(stage);
    expect(listed.length).toBe(7);
    await stage.stopDhcp();
    const now = await readStores(machine);
    await putStores(machine, inPlaceOf(recorded, now));
    await stage.startDhcp();

    expect(await leasesOf(stage)).toEqual(listed);
    const shown: Shown[] = JSON.parse((await patchbay("inspect", "--json")).stdout);
    const wrong = shown.flatMap((one) =>
      one.plugins.flatMap(({ madeBy, resources }) =>
        resources.filter(({ state }) => state !== "ok" || madeBy !== "patchbay").map((each) => ({
          ...one,
          plugins: each,
        }))
      )
    );
    expect(wrong).toEqual([]);
    expect(shown.map(({ network }) => network).sort()).toEqual([...stage.networkNames, "net8"].sort());
    for (const name of stage.networkNames) {
      const { code, stderr } = await patchbay("check", name, `ctr-${name}`, ...ofInterface(name));
      expect([name, code, stderr]).toEqual([name, 0, ""]);
    }
    await machine.sh("nft flush ruleset");
    expect(await patchbay("repair")).toMatchObject({ code: 0 });
    await takeAllAway(stage);
    expect(await leftSince(moment, machine)).toEqual([]);
  });

  test("are read when the containers are gone: GC leaves nothing, and the DHCP service gives the address back", async () => {
    await using stage = await openStage();
    const { machine, patchbay } = stage;
    await stage.startDhcp();
    await stage.attachAll();
    const now = await readStores(machine);
    await takeAllAway(stage);
    await machine.removeContainer(machine.containers.find(({ name }) => name === "podman")!);
    const moment = await momentOf(machine);
    await stage.stopDhcp();
    await putStores(machine, inPlaceOf(recorded, now));
    const { code, stdout } = await patchbay("inspect", "--brief");
    const all = stage.networkNames.length + 1;
    expect([code, stdout]).toEqual([1, expect.stringMatching(new RegExp(`^${all} attachments: ${all} gone\n`))]);
    expect(await patchbay("gc", "--gone")).toMatchObject({ code: 0 });
    await stage.startDhcp();
    await untilTrue(() => leasesOf(stage), (leases) => leases.length === 0);
    expect(await leftSince(moment, machine)).toEqual([]);
  });

  test("are read after a boot: nobody has the addresses, and DHCP's is asked for again", async () => {
    await using stage = await openStage();
    const { machine, patchbay } = stage;
    await putStores(
      machine,
      new Map([...recorded].filter(([path]) => path.startsWith("/var/lib/")).map(ofAnotherBoot)),
    );
    await stage.startDhcp();
    expect(await patchbay("gc", "--gone")).toMatchObject({ code: 0 });
    await stage.attachAll();
    const leases = Object.fromEntries((await leasesOf(stage)).map(({ network, address }) => [network, address]));
    // Each range goes on where it was.
    expect(leases).toMatchObject({
      old: "10.32.0.3",
      near: "10.34.0.3",
      tapped: "10.35.0.3",
      leased: "192.168.77.110",
    });
    await takeAllAway(stage);
    expect(await leasesOf(stage)).toEqual([]);
    expect(await stage.stopDhcp()).toContain("1 from before the boot is remembered");
  });
});

function ofAnotherBoot([path, file]: [string, StoredFile]): [string, StoredFile] {
  const content = text(file.bytes).replace(/"bootId":"[^"]+"/, '"bootId":"11111111-1111-4111-8111-111111111111"');
  const bytes = Uint8Array.from(Buffer.from(content, "latin1"));
  if (path.includes("/.patchbay/") && bytes.length > 0) bytes.fill(0x11, BOOT_ID, BOOT_ID_END);
  return [path, { ...file, bytes }];
}

interface Shown {
  network: string;
  plugins: { madeBy: string; resources: { state: string }[] }[];
}

const ofInterface = (network: string) => network === "inner" ? ["--ifname", "lo"] : [];

async function takeAllAway({ machine, patchbay, teardown, networkNames }: Stage): Promise<void> {
  for (const name of networkNames) {
    expect(await patchbay("del", name, `ctr-${name}`, ...ofInterface(name))).toMatchObject({ code: 0, stderr: "" });
  }
  await teardown();
  for (const name of networkNames) {
    await machine.removeContainer(machine.containers.find((one) => one.name === name)!);
  }
}

/** Without what a moment says of a lease of DHCP. */
async function leasesOf({ patchbay }: Stage): Promise<Record<string, unknown>[]> {
  const leases: Record<string, unknown>[] = JSON.parse((await patchbay("ipam", "list", "--json")).stdout);
  return leases.map(({ network, address, containerId, ifName }) => ({ network, address, containerId, ifName }));
}

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");

/** MAC addresses, links with random names, namespaces by number, what ADD saw, boots, routes with their link's index. */
const CHOSEN =
  /^(?:(?:[0-9a-f]{2}:){5}[0-9a-f]{2}|[a-z]+[0-9a-f]{8}|[0-9a-f]{16}|\d+:\d+:\d+ .*|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{48,})$/i;

/** The recorded stores with what is chosen anew as it is in those of now. */
function inPlaceOf(recorded: Stores, now: Stores): Stores {
  const changes = new Map<string, string>();
  for (const [path, { bytes }] of recorded) {
    const other = now.get(path);
    if (other !== undefined) pair(documents(text(bytes)), documents(text(other.bytes)), changes);
  }
  return new Map([...recorded].map(([path, file]): [string, StoredFile] => {
    const other = now.get(path);
    return [
      path,
      path.includes("/.patchbay/") ? inThisBoot(file, other) : { ...file, bytes: changed(file, changes, other) },
    ];
  }));
}

/** A ledger has one on each line. */
function documents(content: string): unknown[] {
  return content.split("\n").map(parsed);
}

function parsed(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return content;
  }
}

function pair(before: unknown, after: unknown, changes: Map<string, string>): void {
  if (typeof before === "string" && typeof after === "string") {
    if (CHOSEN.test(before) && CHOSEN.test(after) && before !== after) changes.set(before, after);
    const [inner, innerNow] = [parsed(before), parsed(after)];
    if (isKeyed(inner) && isKeyed(innerNow)) pair(inner, innerNow, changes);
  } else if (isKeyed(before) && isKeyed(after)) {
    for (const key of Object.keys(before)) pair(before[key], after[key], changes);
  }
}

function isKeyed(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** And when a lease began, on the clocks of now. */
function changed({ bytes }: StoredFile, changes: Map<string, string>, now: StoredFile | undefined): Uint8Array {
  let content = text(bytes);
  for (const [before, after] of changes) content = content.replaceAll(before, after);
  const clocks = now === undefined ? null : /"since":[\d.]+,"sinceWall":[\d.]+/.exec(text(now.bytes));
  if (clocks !== null) content = content.replace(/"since":[\d.]+,"sinceWall":[\d.]+/, clocks[0]);
  return Buffer.from(content, "latin1");
}

/** docs/lease-store.md, "The index of a block". */
const BOOT_ID = 48, BOOT_ID_END = 64;

function inThisBoot(file: StoredFile, now: StoredFile | undefined): StoredFile {
  if (file.bytes.length < BOOT_ID_END || now === undefined) return file;
  const bytes = Uint8Array.from(file.bytes);
  bytes.set(now.bytes.subarray(BOOT_ID, BOOT_ID_END), BOOT_ID);
  return { ...file, bytes };
}
