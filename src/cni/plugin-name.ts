/**
 * Which plugin a name means: a program's name, or `type` in a configuration. Distributions and other programs put a
 * prefix before it (`buildkit-cni-bridge`, `cnv-tuning`), and the reference plugins work by any name.
 */
export function meansPlugin(name: string, plugin: string): boolean {
  return name === plugin || name.endsWith(`-${plugin}`);
}
