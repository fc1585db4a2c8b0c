/** Kinds of resources that write down what is asked of them. The table of resources has them beside the program's own. */
import type { IpConfig } from "../../src/cni/result.ts";
import type { Host } from "../../src/contract/host.ts";
import type { AnyKind, HostEnd, Resource, ResourceKind } from "../../src/contract/resource.ts";
import * as table from "../../src/resources/table.ts";
import { replacedExports } from "./replaced-exports.ts";

export interface BenchSpec {
  name: string;
  /** The operations that fail, and what is thrown. */
  fails?: Record<string, string>;
  /** What `verify` finds. */
  differs?: string[];
  ips?: IpConfig[];
  end?: HostEnd;
  master?: string;
}

/** What was asked, in order: `remove link a`. */
export const asked: string[] = [];

const errors: Record<string, (message: string) => Error> = {
  TypeError: (message) => new TypeError(message),
  RangeError: (message) => new RangeError(message),
  SyntaxError: (message) => new SyntaxError(message),
};

function ask(operation: string, kind: string, { name, fails }: BenchSpec, host?: Host, isRestated?: boolean): void {
  const how = [
    ...isRestated ? ["restated"] : [],
    ...host !== undefined && host.container === undefined ? ["outside"] : [],
  ];
  asked.push([operation, kind, name, ...how].join(" "));
  const why = fails?.[operation];
  if (why !== undefined) throw (errors[why] ?? ((message) => new Error(message)))(`cannot ${operation} ${name}`);
}

/** `flags` are what the engine treats kinds differently by. */
function benchKind(kind: string, flags: Partial<AnyKind> = {}): ResourceKind<BenchSpec, string> {
  return {
    kind,
    unmade: "unmade",
    apply(spec, host) {
      ask("apply", kind, spec, host);
      return spec.name;
    },
    verify(spec, host, isRestated) {
      ask("verify", kind, spec, host, isRestated);
      return spec.differs ?? [];
    },
    remove: (spec, host, isRestated) => ask("remove", kind, spec, host, isRestated),
    sweep: (network, isValid, host) =>
      ask(`sweep ${["a", "b"].filter((containerId) => isValid({ containerId }))} of`, kind, { name: network }, host),
    describe: ({ name }) => `${kind} ${name}`,
    ...flags,
  };
}

/** By name; a test may add its own. */
export const kinds: Record<string, AnyKind> = Object.fromEntries(
  [
    benchKind("thing"),
    benchKind("link", { isContainerLink: true, hostSide: ({ end }) => ({ end }) }),
    benchKind("rule", { isOfInterface: true }),
    benchKind("call", { isDelegated: true }),
    benchKind("lease", { isDelegated: true, isLease: true }),
    benchKind("addresses", {
      addressesIn: ({ ips }) => ips ?? [],
      gist: ({ ips = [] }) => ({ addresses: ips.map(({ address }: IpConfig) => address) }),
    }),
    benchKind("upon", { hostSide: ({ master }) => ({ master }) }),
    benchKind("shared", {
      retire: ({ before, network }, specs) => [
        { what: `shared of ${network}: ${specs.map(({ name }) => name)} after ${before.length}` },
      ],
    }),
  ].map((kind) => [kind.kind, kind]),
);

const { kindNames, loadKind } = table;
export const replacedKinds = replacedExports(require.resolve("../../src/resources/table.ts"), table, {
  kindNames: [...kindNames, ...Object.keys(kinds)],
  loadKind: (name: string) => Object.hasOwn(kinds, name) ? kinds[name] : loadKind(name),
});

/** `thing a` is a resource of the kind `thing`. */
export function made(text: string, more: Partial<BenchSpec> = {}): Resource<string> {
  const [kind, name] = text.split(" ") as [string, string];
  return { kind: kinds[kind]!, spec: { name, ...more } };
}
