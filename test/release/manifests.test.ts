/** The manifests of release/image name what exists: the image, its programs, their commands, options and directories. */
import { expect, test } from "bun:test";
import { version } from "../../package.json";
import { DEFAULT_DIRECTORY, NAME } from "../../release/image/image.ts";
import { ownCommands } from "../../src/frontends/cli/command-line.ts";
import { parseArguments } from "../../src/frontends/cli/command.ts";
import { containersOf, type ManifestContainer, manifestNames, type Pod, readManifest } from "../support/manifests.ts";

test("there are three", () => {
  expect(manifestNames).toEqual(["daemonset.yaml", "resident.yaml", "uninstall.yaml"]);
});

test.each(manifestNames)("%s", (name) => {
  const { kind, metadata, spec } = readManifest(name), pod = spec.template.spec;
  expect({ kind, namespace: metadata.namespace }).toEqual({ kind: "DaemonSet", namespace: "kube-system" });
  expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
  expect(pod.hostNetwork).toBe(true);
  for (const container of containersOf(pod)) {
    expect(container.image).toBe(`${NAME}:${version}`);
    expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
    expectRuns(container, pod);
    const mounted = container.volumeMounts ?? [], volumes = pod.volumes ?? [];
    for (const { name } of mounted) expect(volumes.map((volume) => volume.name)).toContain(name);
  }
});

test("only the resident is privileged, and sees the node's processes", () => {
  for (const name of manifestNames) {
    const pod = readManifest(name).spec.template.spec, isResident = name === "resident.yaml";
    expect(pod.hostPID ?? false).toBe(isResident);
    for (const { securityContext } of containersOf(pod)) {
      expect(securityContext.privileged ?? false).toBe(isResident);
      if (!isResident) expect(securityContext.allowPrivilegeEscalation).toBe(false);
    }
  }
});

/** The program's commands take these arguments, and what they name is mounted. */
function expectRuns({ command, args, volumeMounts = [] }: ManifestContainer, pod: Pod): void {
  if (command !== undefined) {
    return expect({ command, args }).toEqual({ command: ["/usr/bin/pause"], args: undefined });
  }
  const [name, ...words] = args!, { options, operandCount } = ownCommands[name!]!();
  const given = parseArguments(words, options), [least, most] = operandCount;
  expect(given.operands.length).toBeGreaterThanOrEqual(least);
  expect(given.operands.length).toBeLessThanOrEqual(most);
  for (const directory of given.operands) {
    expect(directory).toBe(DEFAULT_DIRECTORY);
    expect(volumeMounts.map(({ mountPath }) => mountPath)).toContain(directory);
  }
  expect({ entersHost: given.has("host") }).toEqual({ entersHost: pod.hostPID ?? false });
}
