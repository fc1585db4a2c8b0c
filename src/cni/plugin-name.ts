/**
 * Which plugin a name means: a program's name, or `type` in a configuration. Distributions and other programs put a
 * prefix before it (`buildkit-cni-bridge`, `cnv-tuning`), and the reference plugins work by any name. A project's name
 * means its plugin, too.
 */
export const PROJECTS: Readonly<Record<string, string>> = { "ovs-cni": "ovs" };

export function meansPlugin(name: string, plugin: string): boolean {
  return name === plugin || name.endsWith(`-${plugin}`) || PROJECTS[name] === plugin;
}
