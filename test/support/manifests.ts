/** The manifests of release/image, and how podman runs a container of theirs in kubelet's place. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const folder = resolve(import.meta.dir, "../../release/image");
export const manifestNames = readdirSync(folder).filter((name) => name.endsWith(".yaml")).sort();

export interface ManifestContainer {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  volumeMounts?: { name: string; mountPath: string }[];
  securityContext: {
    privileged?: boolean;
    runAsUser?: number;
    readOnlyRootFilesystem?: boolean;
    allowPrivilegeEscalation?: boolean;
    capabilities?: { drop?: string[]; add?: string[] };
  };
}

export interface Pod {
  hostPID?: boolean;
  hostNetwork?: boolean;
  initContainers?: ManifestContainer[];
  containers: ManifestContainer[];
  volumes?: { name: string; hostPath: { path: string } }[];
}

export interface Manifest {
  kind: string;
  metadata: { namespace: string; name: string };
  spec: { selector: { matchLabels: object }; template: { metadata: { labels: object }; spec: Pod } };
}

export function readManifest(name: string): Manifest {
  return Bun.YAML.parse(readFileSync(join(folder, name), "utf8")) as Manifest;
}

export function containersOf({ initContainers = [], containers }: Pod): ManifestContainer[] {
  return [...initContainers, ...containers];
}

/** Options of `podman run` for what the container may do. */
export function podmanOptions(manifest: string, container: string): string[] {
  const pod = readManifest(manifest).spec.template.spec,
    one = containersOf(pod).find(({ name }) => name === container)!;
  const { privileged, runAsUser, readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } =
    one.securityContext;
  return [
    ...pod.hostNetwork ? ["--network=host"] : [],
    ...pod.hostPID ? ["--pid=host"] : [],
    ...privileged ? ["--privileged"] : [],
    ...runAsUser === undefined ? [] : [`--user=${runAsUser}`],
    ...readOnlyRootFilesystem ? ["--read-only"] : [],
    ...allowPrivilegeEscalation === false ? ["--security-opt=no-new-privileges"] : [],
    ...(capabilities?.drop ?? []).map((name) => `--cap-drop=${name}`),
    ...(capabilities?.add ?? []).map((name) => `--cap-add=${name}`),
  ];
}
