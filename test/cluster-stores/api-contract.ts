/**
 * What a store of records relies on in the API server of Kubernetes. The fake of the fast tests is held to it as the real
 * server is. Servers newer than 1.20 were seen to do the same, where nothing else is said.
 *
 * Longer than 300 lines: a list of cases.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { API_GROUP, pathOf, POOL_LABEL } from "../../src/cluster-stores/kubernetes/objects.ts";
import { random } from "../support/random.ts";
import { untilTrue } from "../support/until-true.ts";
import {
  type Answered,
  type Asking,
  askingOf,
  DEFINITIONS,
  installKinds,
  type ServerAtTest,
  Watching,
} from "../support/kubernetes/asking.ts";

interface Stage {
  ask: Asking;
  server: ServerAtTest;
}

export function apiContract(name: string, open: () => Promise<ServerAtTest>): void {
  describe(name, () => {
    const stage = {} as Stage;
    beforeAll(async () => {
      stage.server = await open();
      stage.ask = askingOf(stage.server);
    });
    describe("one object", () => oneObject(stage));
    describe("an object that is deleted", () => deletion(stage));
    describe("watches", () => watches(stage));
    describe("a kind that is deleted", () => goingKind(stage));
    describe("names and rights", () => namesAndRights(stage));
  });
}

const NODES = pathOf("node"), BLOCKS = pathOf("block");

function oneObject(stage: Stage): void {
  test("1. POST of a new name: 201", async () => {
    const made = await stage.ask("POST", NODES, node(newName()));
    expect(made.status).toBe(201);
    expect(made.body.metadata.resourceVersion).toMatch(/^[1-9]\d*$/);
    expect(made.body.metadata.uid).not.toBe("");
  });

  test("2. POST of an existing name: 409, AlreadyExists", async () => {
    const name = newName();
    await stage.ask("POST", NODES, node(name));
    expect(reasonOf(await stage.ask("POST", NODES, node(name)))).toBe("409 AlreadyExists");
  });

  test("3. PUT with the current version: 200, and it rises", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    const put = await stage.ask("PUT", `${NODES}/${name}`, changed(was, "second"));
    expect(put.status).toBe(200);
    expect(versionOf(put)).toBeGreaterThan(Number(was.metadata.resourceVersion));
    expect(put.body.metadata.uid).toBe(was.metadata.uid);
    expect((await stage.ask("GET", `${NODES}/${name}`)).body).toEqual(put.body);
  });

  test("4. PUT with an older version: 409, Conflict", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    await stage.ask("PUT", `${NODES}/${name}`, changed(was, "second"));
    expect(reasonOf(await stage.ask("PUT", `${NODES}/${name}`, changed(was, "third")))).toBe("409 Conflict");
  });

  test("5. PUT without a version: 422", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    const { resourceVersion: _, ...metadata } = was.metadata;
    const put = await stage.ask("PUT", `${NODES}/${name}`, { ...changed(was, "second"), metadata });
    expect(reasonOf(put)).toBe("422 Invalid");
  });

  test("6. PUT of an absent name: 404, with its name; in 1.20 409 where it says a uid", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    const absent = newName(), { uid, ...metadata } = { ...was.metadata, name: absent };
    const put = await stage.ask("PUT", `${NODES}/${absent}`, { ...was, metadata });
    expect([reasonOf(put), put.body.details.name]).toEqual(["404 NotFound", absent]);
    const withUid = await stage.ask("PUT", `${NODES}/${absent}`, { ...was, metadata: { ...metadata, uid } });
    expect(["409 Conflict", "404 NotFound"]).toContain(reasonOf(withUid));
  });

  test("7. PUT of equal content: 200, and the version stays", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    const once = (await stage.ask("PUT", `${NODES}/${name}`, dropped(changed(was, "second")))).body;
    const again = await stage.ask("PUT", `${NODES}/${name}`, dropped(once));
    expect([again.status, versionOf(again)]).toEqual([200, Number(once.metadata.resourceVersion)]);
  });

  test("a version is higher than each that was answered before, of whichever kind", async () => {
    let last = 0;
    for (
      const [path, object] of [[NODES, node(newName())], [BLOCKS, block(newName(), 1)], [NODES, node(newName())]]
    ) {
      const made = await stage.ask("POST", path as string, object as object);
      expect(versionOf(made)).toBeGreaterThan(last);
      last = versionOf(made);
      // The list of another kind, without a version, is not older.
      const listed = await stage.ask("GET", `${pathOf("alarm")}?limit=1`);
      expect(versionOf(listed)).toBeGreaterThanOrEqual(last);
    }
  });

  test("a PUT takes away who wrote which field", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    const put = await stage.ask("PUT", `${NODES}/${name}`, dropped(changed(was, "second")));
    expect(put.body.metadata.managedFields).toBeUndefined();
  });

  test("a field that the kind does not know is dropped, or refused by newer servers that are asked to", async () => {
    const name = newName(),
      made = await stage.ask("POST", `${NODES}?fieldValidation=Strict`, {
        ...node(name),
        spec: { ...node(name).spec, tunnel: "x" },
      });
    if (made.status === 400) return expect(made.text).toContain("tunnel");
    expect([made.status, made.body.spec]).toEqual([201, node(name).spec]);
  });
}

function deletion(stage: Stage): void {
  const held = (name: string) => node(name, { finalizers: [`${API_GROUP}/joined`] });

  test("8. without finalizer it is gone, and what is made later has another uid", async () => {
    const name = newName(), made = (await stage.ask("POST", NODES, node(name))).body;
    expect((await stage.ask("DELETE", `${NODES}/${name}`)).status).toBe(200);
    expect(reasonOf(await stage.ask("GET", `${NODES}/${name}`))).toBe("404 NotFound");
    const again = await stage.ask("POST", NODES, node(name));
    expect(again.status).toBe(201);
    expect(again.body.metadata.uid).not.toBe(made.metadata.uid);
  });

  test("9. with a finalizer it stays, says since when, and its version rises", async () => {
    const name = newName(), made = (await stage.ask("POST", NODES, held(name))).body;
    const going = await stage.ask("DELETE", `${NODES}/${name}`);
    expect([going.status, typeof going.body.metadata.deletionTimestamp]).toEqual([200, "string"]);
    expect(versionOf(going)).toBeGreaterThan(Number(made.metadata.resourceVersion));
    expect((await stage.ask("GET", `${NODES}/${name}`)).body).toEqual(going.body);
  });

  test("10. POST meanwhile: 409; 11. PUT: 200; 12. with a new finalizer: 422", async () => {
    const name = newName();
    await stage.ask("POST", NODES, held(name));
    const going = (await stage.ask("DELETE", `${NODES}/${name}`)).body;
    const post = await stage.ask("POST", NODES, node(name));
    expect([reasonOf(post), post.text]).toEqual([
      "409 AlreadyExists",
      expect.stringContaining("object is being deleted"),
    ]);
    const put = await stage.ask("PUT", `${NODES}/${name}`, changed(going, "second"));
    expect([put.status, put.body.spec.machine]).toEqual([200, "second"]);
    const { metadata } = put.body, finalizers = [...metadata.finalizers, `${API_GROUP}/more`];
    const more = await stage.ask("PUT", `${NODES}/${name}`, { ...put.body, metadata: { ...metadata, finalizers } });
    expect(reasonOf(more)).toBe("422 Invalid");
  });

  test("13. a PUT that empties the finalizers answers with the object, and it is gone", async () => {
    const name = newName();
    await stage.ask("POST", NODES, held(name));
    const going = (await stage.ask("DELETE", `${NODES}/${name}`)).body;
    const metadata = { ...going.metadata, finalizers: [] };
    const put = await stage.ask("PUT", `${NODES}/${name}`, { ...going, metadata });
    expect([put.status, put.body.metadata.uid]).toEqual([200, going.metadata.uid]);
    expect(reasonOf(await stage.ask("GET", `${NODES}/${name}`))).toBe("404 NotFound");
  });

  test("14. DELETE of another version or uid: 409", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    const now = (await stage.ask("PUT", `${NODES}/${name}`, changed(was, "second"))).body;
    const options = { apiVersion: "v1", kind: "DeleteOptions" }, { uid, resourceVersion } = now.metadata;
    for (
      const preconditions of [{ resourceVersion: was.metadata.resourceVersion }, { uid: crypto.randomUUID() }]
    ) {
      const refused = await stage.ask("DELETE", `${NODES}/${name}`, { ...options, preconditions });
      expect(reasonOf(refused)).toBe("409 Conflict");
    }
    const preconditions = { uid, resourceVersion };
    expect((await stage.ask("DELETE", `${NODES}/${name}`, { ...options, preconditions })).status).toBe(200);
  });
}

function watches(stage: Stage): void {
  const watching = (query: string) => new Watching(stage.server, `${NODES}?watch=true&${query}`);
  const named = (name: string) => `fieldSelector=metadata.name%3D${name}`;

  test("15. ADDED, MODIFIED and DELETED come with rising versions, a document a line", async () => {
    const name = newName(), watch = watching(`resourceVersion=0&${named(name)}`);
    await watch.until(({ status }) => status === 200);
    const was = (await stage.ask("POST", NODES, node(name))).body;
    await stage.ask("PUT", `${NODES}/${name}`, changed(was, "second"));
    await stage.ask("DELETE", `${NODES}/${name}`);
    await stage.ask("POST", NODES, node(`${name}x`));
    await watch.until(({ events }) => events.length >= 3);
    watch.end();
    expect(watch.events.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
    const versions = watch.events.map(({ object }) => Number(object.metadata!["resourceVersion"]));
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
  });

  test("a watch from version 0 begins with what is there", async () => {
    const name = newName();
    await stage.ask("POST", NODES, node(name));
    const watch = watching(`resourceVersion=0&${named(name)}`);
    await watch.until(({ events }) => events.length > 0);
    watch.end();
    expect(watch.events.map(({ type, object }) => [type, object.metadata!["name"]])).toEqual([["ADDED", name]]);
  });

  test("a watch from a version tells what came later", async () => {
    const name = newName(), was = (await stage.ask("POST", NODES, node(name))).body;
    await stage.ask("PUT", `${NODES}/${name}`, changed(was, "second"));
    const watch = watching(`resourceVersion=${was.metadata.resourceVersion}&${named(name)}`);
    await watch.until(({ events }) => events.length > 0);
    watch.end();
    expect(watch.events.map(({ type }) => type)).toEqual(["MODIFIED"]);
  });

  test("16. from a forgotten version: 200, one ERROR with 410, end", async () => {
    const watch = watching("resourceVersion=1");
    await watch.until(({ hasEnded }) => hasEnded);
    expect([watch.status, watch.events]).toEqual([200, [
      { type: "ERROR", object: expect.objectContaining({ code: 410, reason: "Expired" }) },
    ]]);
  });

  test("17. from a future version it is silent", async () => {
    const name = newName(), watch = watching(`resourceVersion=9000000000&${named(name)}`);
    const control = watching(`resourceVersion=0&${named(name)}`);
    await control.until(({ status }) => status === 200);
    await stage.ask("POST", NODES, node(name));
    await control.until(({ events }) => events.length > 0);
    expect(watch.events).toEqual([]);
    [watch, control].forEach((each) => each.end());
  });

  test("18. GET and list not older than a future version: 504", async () => {
    const name = newName();
    await stage.ask("POST", NODES, node(name));
    const asked = [`${NODES}/${name}`, NODES].map((path) => stage.ask("GET", `${path}?resourceVersion=9000000000`));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([504, 504]);
  });

  test("19. timeoutSeconds ends it without an error", async () => {
    const watch = watching(`resourceVersion=0&timeoutSeconds=1&${named(newName())}`);
    await watch.until(({ hasEnded }) => hasEnded);
    expect([watch.status, watch.events]).toEqual([200, []]);
  });

  test("20. bookmarks come if asked for", async () => {
    // Servers of 1.20 send none before an event: one of each minute, and one 2 s before the end.
    const name = newName(),
      watch = watching(`resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=6&${named(name)}`);
    await watch.until(({ status }) => status === 200);
    const made = await stage.ask("POST", NODES, node(name));
    await watch.until(({ hasEnded, events }) => hasEnded || events.some(({ type }) => type === "BOOKMARK"));
    watch.end();
    const bookmark = watch.events.find(({ type }) => type === "BOOKMARK");
    expect(Number(bookmark?.object.metadata?.["resourceVersion"])).toBeGreaterThanOrEqual(versionOf(made));
  });
}

function goingKind(stage: Stage): void {
  test("21. its objects go but for those with a finalizer, nothing is made of it, and it goes with the last", async () => {
    const group = `${newName()}.patchbay.dev`, path = `/apis/${group}/v1/things`, definition = definitionOf(group);
    await installKinds(stage.ask, [definition]);
    const thing = (name: string, finalizers: string[]) => ({
      ...{ apiVersion: `${group}/v1`, kind: "Thing", metadata: { name, finalizers }, spec: { text: "first" } },
    });
    for (const each of [thing("free", []), thing("held", [`${group}/held`])]) {
      expect((await stage.ask("POST", path, each)).status).toBe(201);
    }
    await stage.ask("DELETE", `${DEFINITIONS}/things.${group}`);
    await untilTrue(() => stage.ask("GET", `${path}/free`), ({ status }) => status === 404);
    const held = await untilTrue(
      () => stage.ask("GET", `${path}/held`),
      ({ body }) => body?.metadata?.deletionTimestamp !== undefined,
    );

    // 403 in newer ones.
    const post = await stage.ask("POST", path, thing("new", []));
    expect([403, 405]).toContain(post.status);
    expect(post.text).toContain("definition is terminating");
    expect(reasonOf(await stage.ask("POST", DEFINITIONS, definition))).toBe("409 AlreadyExists");
    const put = await stage.ask("PUT", `${path}/held`, { ...held.body, spec: { text: "second" } });
    expect([put.status, put.body.spec.text]).toEqual([200, "second"]);

    const metadata = { ...put.body.metadata, finalizers: [] };
    expect((await stage.ask("PUT", `${path}/held`, { ...put.body, metadata })).status).toBe(200);
    await untilTrue(() => stage.ask("GET", `${DEFINITIONS}/things.${group}`), ({ status }) => status === 404);
    await installKinds(stage.ask, [definition]);
    const again = await untilTrue(() => stage.ask("POST", path, thing("held", [])), ({ status }) => status === 201);
    expect(again.body.metadata.uid).not.toBe(held.body.metadata.uid);
    await stage.ask("DELETE", `${DEFINITIONS}/things.${group}`);
  });

  test("a kind that is not there: 404 without a name", async () => {
    const absent = await stage.ask("GET", `/apis/${API_GROUP}/v1alpha1/addressthings/x`);
    expect([absent.status, absent.body?.details?.name]).toEqual([404, undefined]);
  });
}

function namesAndRights(stage: Stage): void {
  test("22. a PUT with another uid: 409, whatever its version", async () => {
    const name = newName();
    const first = (await stage.ask("POST", NODES, node(name))).body;
    await stage.ask("DELETE", `${NODES}/${name}`);
    const second = (await stage.ask("POST", NODES, node(name))).body;
    const metadata = { ...second.metadata, uid: first.metadata.uid };
    expect(reasonOf(await stage.ask("PUT", `${NODES}/${name}`, { ...second, metadata }))).toBe("409 Conflict");
  });

  test("23. no credential: 403 for system:anonymous; an unknown one: 401; without rights: 403", async () => {
    const made = node(newName()), { stranger } = stage.server;
    const nobody = await stage.ask("POST", NODES, made, null);
    expect([nobody.status, nobody.body.message]).toEqual([403, expect.stringContaining('User "system:anonymous"')]);
    expect((await stage.ask("POST", NODES, made, "unknown")).status).toBe(401);
    const without = await stage.ask("POST", NODES, made, stranger);
    expect([without.status, without.body.message]).toEqual([
      403,
      expect.stringMatching(
        /User "stranger" cannot create resource "addressnodes" in API group "addresses.patchbay.dev"/,
      ),
    ]);
  });

  test("24. names are per kind, and a label filters lists, tables and watches", async () => {
    const name = newName(), label = `labelSelector=${encodeURIComponent(`${POOL_LABEL}=${name}`)}`;
    expect((await stage.ask("POST", NODES, node(`${name}.1`))).status).toBe(201);
    for (const pool of [name, `${name}x`]) expect((await stage.ask("POST", BLOCKS, block(pool, 1))).status).toBe(201);
    const names = ({ body }: Answered) =>
      body.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
    expect(names(await stage.ask("GET", `${BLOCKS}?${label}`))).toEqual([`${name}.1`]);
    await untilTrue(
      () => stage.ask("GET", `${BLOCKS}?resourceVersion=0&${label}`),
      (listed) => Bun.deepEquals(names(listed), [`${name}.1`]),
    );
    const watch = new Watching(stage.server, `${BLOCKS}?watch=true&resourceVersion=0&${label}`);
    await watch.until(({ events }) => events.length > 0);
    await stage.ask("POST", BLOCKS, block(`${name}x`, 2));
    await stage.ask("POST", BLOCKS, block(name, 2));
    await watch.until(({ events }) => events.length > 1);
    watch.end();
    expect(watch.events.map(({ object }) => object.metadata!["name"])).toEqual([`${name}.1`, `${name}.2`]);
  });
}

function node(name: string, metadata: object = {}) {
  const spec = { generation: 1, machine: "first", boot: "b", state: "joined" };
  return { apiVersion: `${API_GROUP}/v1alpha1`, kind: "AddressNode", metadata: { name, ...metadata }, spec };
}

function block(pool: string, index: number): object {
  return {
    apiVersion: `${API_GROUP}/v1alpha1`,
    kind: "AddressBlock",
    metadata: { name: `${pool}.${index}`, labels: { [POOL_LABEL]: pool } },
    spec: { pool, poolUID: "u", index },
  };
}

type AnyObject = { metadata: Record<string, unknown>; spec: object };

function changed(object: AnyObject, machine: string): AnyObject {
  return { ...object, spec: { ...object.spec, machine } };
}

function dropped(object: AnyObject): AnyObject {
  return { ...object, metadata: { ...object.metadata, managedFields: [{}] } };
}

function definitionOf(group: string): Record<string, unknown> {
  const schema = {
    type: "object",
    properties: { spec: { type: "object", properties: { text: { type: "string" } } } },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: "Cluster",
      names: { kind: "Thing", plural: "things" },
      versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  };
}

function reasonOf({ status, body }: Answered): string {
  return `${status} ${body?.reason}`;
}

function versionOf({ body }: Answered): number {
  return Number(body.metadata.resourceVersion);
}

function newName(): string {
  return `t${Math.floor(random() * 2 ** 48).toString(36)}`;
}
