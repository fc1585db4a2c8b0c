/** The manifests of release/kubernetes agree with the store: kinds, who may do what with them, and what the agent's pod has. */
import { expect, test } from "bun:test";
import { version } from "../../package.json";
import { NAME } from "../../release/image/image.ts";
import { API_GROUP, objectKinds } from "../../src/cluster-stores/kubernetes/objects.ts";
import { clusterConfFrom, CONFIGURATION_FILE } from "../../src/cluster/configuration.ts";
import { manifestsIn } from "../support/kubernetes/asking.ts";
import type { Manifest, Pod } from "../support/manifests.ts";

const AGENT = { name: "patchbay-node", namespace: "kube-system" };
const USER = `system:serviceaccount:${AGENT.namespace}:${AGENT.name}`;
const plural = (kind: keyof typeof objectKinds) => objectKinds[kind].plural;

test("an agent's role: pools are read, blocks and nodes written, the alarm raised, and nothing deleted", () => {
  const [account, role, binding] = manifestsIn("rbac.yaml") as [
    { kind: string; metadata: object },
    { metadata: { name: string }; rules: { apiGroups: string[]; resources: string[]; verbs: string[] }[] },
    { roleRef: { name: string }; subjects: { kind: string; name: string; namespace?: string }[] },
  ];
  expect([account.kind, account.metadata]).toEqual(["ServiceAccount", AGENT]);
  expect(role.rules.every(({ apiGroups }) => Bun.deepEquals(apiGroups, [API_GROUP]))).toBe(true);
  const read = ["get", "list", "watch"],
    may = role.rules.flatMap(({ resources, verbs }) => resources.map((one) => [one, verbs]));
  expect(Object.fromEntries(may)).toEqual({
    [plural("pool")]: read,
    [plural("block")]: [...read, "create", "update"],
    [plural("node")]: [...read, "create", "update"],
    [plural("alarm")]: [...read, "create"],
  });
  expect(binding.roleRef.name).toBe(role.metadata.name);
  expect(binding.subjects.map(({ kind, name }) => [kind, name])).toEqual([
    ["ServiceAccount", AGENT.name],
    ["Group", "system:nodes"],
  ]);
});

test("the policy is about these kinds, and the agent's account", () => {
  const [policy, binding] = manifestsIn("admission-policy.yaml") as unknown as [
    {
      metadata: { name: string };
      spec: {
        failurePolicy: string;
        matchConstraints: { resourceRules: { apiGroups: string[]; operations: string[] }[] };
        matchConditions: { expression: string }[];
        validations: { expression: string }[];
      };
    },
    { spec: { policyName: string; validationActions: string[] } },
  ];
  const { spec } = policy, [rule] = spec.matchConstraints.resourceRules;
  expect([spec.failurePolicy, rule!.apiGroups, rule!.operations]).toEqual(["Fail", [API_GROUP], [
    "CREATE",
    "UPDATE",
    "DELETE",
  ]]);
  expect(spec.matchConditions[0]!.expression).toContain(`'${USER}'`);
  expect([binding.spec.policyName, binding.spec.validationActions]).toEqual([policy.metadata.name, ["Deny"]]);
  for (const [, resource] of JSON.stringify(spec.validations).matchAll(/resource\.resource != '(\w+)'/g)) {
    expect(Object.values(objectKinds).map((kind) => kind.plural)).toContain(resource!);
  }
});

interface Column {
  name: string;
  type: string;
  jsonPath: string;
  priority?: number;
}

function columnsOf(kind: keyof typeof objectKinds): Column[] {
  const definition = manifestsIn("crds.yaml").find(({ metadata }) =>
    (metadata as { name: string }).name.startsWith(plural(kind))
  );
  const { versions: [{ additionalPrinterColumns }] } = definition!["spec"] as {
    versions: [{ additionalPrinterColumns: Column[] }];
  };
  return additionalPrinterColumns;
}

test.each(
  [
    ["pool", ["Layout", "State", "Range", "Second Range", "Age"]],
    ["block", ["Pool", "Node", "Going", "Last Node", "Age"]],
    ["node", ["State", "Generation", "Contested", "Age"]],
    ["alarm", ["By", "Saw", "Age"]],
  ] as const,
)("kubectl shows of each %s what a person asks for, and its age", (kind, names) => {
  const columns = columnsOf(kind), shown = columns.filter(({ priority = 0 }) => priority === 0);
  expect(shown.map(({ name }) => name)).toEqual([...names]);
  expect(columns.find(({ name }) => name === "Age")).toEqual({
    name: "Age",
    type: "date",
    jsonPath: ".metadata.creationTimestamp",
  });
});

test("the columns that agents list by are the block's, and no other column has their names", () => {
  const columns = columnsOf("block");
  expect(Object.fromEntries(columns.map(({ name, jsonPath }) => [name, jsonPath]))).toMatchObject({
    ...{ Node: ".spec.node", "Last Node": ".spec.lastNode", Index: ".spec.index", Generation: ".spec.generation" },
    ...{
      Claim: ".spec.claim",
      "Pool UID": ".spec.poolUID",
      UID: ".metadata.uid",
      Version: ".metadata.resourceVersion",
    },
    Going: ".metadata.deletionTimestamp",
  });
  expect(new Set(columns.map(({ name }) => name)).size).toBe(columns.length);
});

test("the agent's pod has its configuration, its account and its directories, and is not privileged", () => {
  const [configuration, daemonset] = manifestsIn("daemonset.yaml") as unknown as [
    { metadata: { name: string }; data: Record<string, string> },
    Manifest,
  ];
  const file = CONFIGURATION_FILE.split("/").at(-1)!, { spec } = daemonset;
  expect(clusterConfFrom(JSON.parse(configuration.data[file]!)).store).toEqual({ kind: "kubernetes" });
  const pod = spec.template.spec as Pod & { serviceAccountName: string }, [container] = pod.containers;
  expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
  expect([daemonset.metadata.namespace, pod.serviceAccountName]).toEqual([AGENT.namespace, AGENT.name]);
  expect([container!.image, container!.args]).toEqual([`${NAME}:${version}`, [
    "node",
    "--config",
    CONFIGURATION_FILE,
  ]]);
  expect(container!.securityContext).toMatchObject({
    ...{ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
  });
  const hostPaths = Object.fromEntries(pod.volumes!.map(({ name, hostPath }) => [name, hostPath?.path]));
  expect(container!.volumeMounts!.map(({ name, mountPath }) => [mountPath, hostPaths[name]])).toEqual([
    ["/etc/patchbay", undefined],
    ["/run/patchbay", "/run/patchbay"],
    ["/var/lib/patchbay", "/var/lib/patchbay"],
    ["/etc/machine-id", "/etc/machine-id"],
  ]);
});
