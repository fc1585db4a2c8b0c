/**
 * What an API server keeps, as far as a store of records notices: objects of kinds that are objects themselves, versions that
 * rise over all of them, and the history that watches read. As a server of 1.20, it drops what a kind's schema does not know.
 */
export interface ApiObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    uid: string;
    resourceVersion: string;
    generation?: number;
    creationTimestamp: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    managedFields?: unknown;
    [more: string]: unknown;
  };
  [more: string]: unknown;
}

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
}

export interface Column {
  name: string;
  type: string;
  jsonPath: string;
}

export interface FakeKind {
  group: string;
  version: string;
  plural: string;
  kind: string;
  /** Undefined: nothing is dropped. */
  schema?: Schema;
  columns: readonly Column[];
  /** Somebody deletes the kind: nothing is made of it any more. */
  isGoing?: boolean;
}

export interface ApiEvent {
  version: number;
  type: "ADDED" | "MODIFIED" | "DELETED";
  kind: FakeKind;
  object: ApiObject;
}

export interface Outcome {
  status: number;
  body: object;
}

const DEFINITIONS: FakeKind = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  columns: [],
};
const CLEAN_UP = "customresourcecleanup.apiextensions.k8s.io";

export class FakeObjects {
  /** The newest change's. */
  revision = 100;
  /** Before it, nobody remembers changes. */
  readonly oldest = this.revision;
  readonly events: ApiEvent[] = [];
  readonly listeners = new Set<() => void>();
  private readonly kinds = new Map<string, FakeKind>([[`${DEFINITIONS.group}/${DEFINITIONS.plural}`, DEFINITIONS]]);
  private readonly objects = new Map<FakeKind, Map<string, ApiObject>>();

  kindOf(group: string, version: string, plural: string): FakeKind | undefined {
    const kind = this.kinds.get(`${group}/${plural}`);
    return kind?.version === version ? kind : undefined;
  }

  allOf(kind: FakeKind): Map<string, ApiObject> {
    return this.objects.getOrInsertComputed(kind, () => new Map());
  }

  create(kind: FakeKind, sent: ApiObject): Outcome {
    const name = sent.metadata?.name, there = this.allOf(kind).get(name);
    if (typeof name !== "string") return failure(422, "Invalid", "metadata.name: Required value", kind);
    if (kind.isGoing) {
      return failure(
        405,
        "MethodNotAllowed",
        "create not allowed while custom resource definition is terminating",
        kind,
      );
    }
    if (there !== undefined) {
      const isGoing = there.metadata.deletionTimestamp === undefined ? "" : "object is being deleted: ";
      return failure(409, "AlreadyExists", `${isGoing}${nameIn(kind, name)} already exists`, kind, name);
    }
    const object = pruned(kind, sent);
    const { managedFields: _, deletionTimestamp: __, ...metadata } = sent.metadata;
    object.metadata = {
      ...metadata,
      uid: crypto.randomUUID(),
      generation: 1,
      creationTimestamp: timestamp(),
      resourceVersion: "",
    };
    if (kind === DEFINITIONS) this.define(object);
    this.write("ADDED", kind, object);
    return { status: 201, body: object };
  }

  replace(kind: FakeKind, name: string, sent: ApiObject): Outcome {
    const there = this.allOf(kind).get(name);
    const { uid, resourceVersion, finalizers = [] } = sent.metadata;
    if (there === undefined && uid === undefined) return notFound(kind, name);
    if (there === undefined || (uid !== undefined && uid !== there.metadata.uid)) {
      return conflict(kind, name, `Precondition failed: UID in precondition: ${uid}`);
    }
    const was = there.metadata;
    if (resourceVersion === undefined || resourceVersion === "") {
      const why = "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
      return failure(422, "Invalid", `${nameIn(kind, name)} is invalid: ${why}`, kind, name);
    }
    if (resourceVersion !== was.resourceVersion) return conflict(kind, name, "the object has been modified");
    const added = finalizers.filter((each) => !was.finalizers?.includes(each));
    if (was.deletionTimestamp !== undefined && added.length > 0) {
      const why = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted";
      return failure(422, "Invalid", `${nameIn(kind, name)} is invalid: ${why}`, kind, name);
    }
    const { creationTimestamp, deletionTimestamp, generation } = was,
      { managedFields: _, ...metadata } = sent.metadata;
    const object = pruned(kind, sent);
    object.metadata = {
      ...metadata,
      name,
      ...{ uid: was.uid, resourceVersion, creationTimestamp, generation },
      ...deletionTimestamp !== undefined && { deletionTimestamp },
    };
    if (Bun.deepEquals(plain(object), plain(there))) return { status: 200, body: there };
    if (deletionTimestamp !== undefined && finalizers.length === 0) this.drop(kind, object);
    else this.write("MODIFIED", kind, object);
    return { status: 200, body: object };
  }

  delete(kind: FakeKind, name: string, preconditions: { uid?: string; resourceVersion?: string } = {}): Outcome {
    const there = this.allOf(kind).get(name);
    if (there === undefined) return notFound(kind, name);
    const { metadata } = there;
    for (const field of ["uid", "resourceVersion"] as const) {
      const wanted = preconditions[field];
      if (wanted !== undefined && wanted !== metadata[field]) {
        return conflict(kind, name, `Precondition failed: ${field} in precondition: ${wanted}`);
      }
    }
    if ((metadata.finalizers ?? []).length === 0) {
      this.drop(kind, structuredClone(there));
      return { status: 200, body: { ...STATUS, status: "Success", details: detailsOf(kind, name) } };
    }
    if (metadata.deletionTimestamp !== undefined) return { status: 200, body: there };
    const going = structuredClone(there);
    going.metadata.deletionTimestamp = timestamp();
    this.write("MODIFIED", kind, going);
    if (kind === DEFINITIONS) this.undefine(going);
    return { status: 200, body: going };
  }

  private write(type: ApiEvent["type"], kind: FakeKind, object: ApiObject): void {
    object.metadata.resourceVersion = String(++this.revision);
    this.allOf(kind).set(object.metadata.name, object);
    this.tell(type, kind, object);
  }

  private drop(kind: FakeKind, object: ApiObject): void {
    const { name } = object.metadata;
    object.metadata.resourceVersion = String(++this.revision);
    this.allOf(kind).delete(name);
    this.tell("DELETED", kind, object);
    if (kind !== DEFINITIONS && kind.isGoing && this.allOf(kind).size === 0) {
      const definition = this.allOf(DEFINITIONS).get(`${kind.plural}.${kind.group}`)!;
      this.kinds.delete(`${kind.group}/${kind.plural}`);
      this.drop(DEFINITIONS, definition);
    }
  }

  private tell(type: ApiEvent["type"], kind: FakeKind, object: ApiObject): void {
    this.events.push({ version: this.revision, type, kind, object: structuredClone(object) });
    for (const listener of this.listeners) listener();
  }

  private define(definition: ApiObject): void {
    const { group, names, versions } = definition["spec"] as {
      group: string;
      names: { plural: string; kind: string };
      versions: [{ name: string; schema: { openAPIV3Schema: Schema }; additionalPrinterColumns?: Column[] }];
    };
    const [{ name: version, schema, additionalPrinterColumns: columns = [] }] = versions;
    definition.metadata.finalizers = [CLEAN_UP];
    this.kinds.set(`${group}/${names.plural}`, {
      ...{ group, version, plural: names.plural, kind: names.kind, columns },
      schema: schema.openAPIV3Schema,
    });
  }

  /** Objects without finalizer go at once, and the kind with the last one. */
  private undefine(definition: ApiObject): void {
    const { group, names } = definition["spec"] as { group: string; names: { plural: string } };
    const kind = this.kinds.get(`${group}/${names.plural}`)!;
    kind.isGoing = true;
    for (const name of [...this.allOf(kind).keys()]) this.delete(kind, name);
    if (this.allOf(kind).size > 0 || !this.kinds.has(`${group}/${names.plural}`)) return;
    this.kinds.delete(`${group}/${names.plural}`);
    this.drop(DEFINITIONS, definition);
  }
}

const STATUS = { kind: "Status", apiVersion: "v1", metadata: {} };

function detailsOf({ group, plural }: FakeKind, name?: string): object {
  return { ...name !== undefined && { name }, group, kind: plural };
}

export function failure(status: number, reason: string, message: string, kind?: FakeKind, name?: string): Outcome {
  const details = kind === undefined ? {} : detailsOf(kind, name);
  return { status, body: { ...STATUS, status: "Failure", message, reason, details, code: status } };
}

function nameIn({ group, plural }: FakeKind, name: string): string {
  return `${plural}.${group} "${name}"`;
}

export function notFound(kind: FakeKind, name: string): Outcome {
  return failure(404, "NotFound", `${nameIn(kind, name)} not found`, kind, name);
}

function conflict(kind: FakeKind, name: string, why: string): Outcome {
  return failure(409, "Conflict", `Operation cannot be fulfilled on ${nameIn(kind, name)}: ${why}`, kind, name);
}

function timestamp(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}

/** A version that has not changed is none. */
function plain({ metadata: { resourceVersion: _, ...metadata }, ...rest }: ApiObject): object {
  const { labels = {}, annotations = {}, finalizers = [], ...more } = metadata;
  return { ...rest, metadata: { ...more, labels, annotations, finalizers } };
}

/** Without what the schema of its kind does not know. */
function pruned({ schema }: FakeKind, object: ApiObject): ApiObject {
  const copy = structuredClone(object);
  if (schema === undefined) return copy;
  const { apiVersion, kind, metadata, ...rest } = copy;
  return { ...prunedBy(schema, rest) as object, apiVersion, kind, metadata };
}

function prunedBy(schema: Schema | undefined, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => prunedBy(schema?.items, each));
  if (typeof value !== "object" || value === null || schema === undefined) return value;
  const { properties = {}, additionalProperties: more } = schema;
  return Object.fromEntries(
    Object.entries(value).filter(([key]) => properties[key] !== undefined || more !== undefined && more !== false)
      .map(([key, each]) => [key, prunedBy(properties[key] ?? (typeof more === "object" ? more : undefined), each)]),
  );
}
