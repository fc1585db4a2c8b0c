/** The directories of a run: it makes some empty, and shows there what these would hide, the plugins and where links lead. */
import { linkTarget } from "../ffi/directory-entries.ts";
import { closeFile, exists, identify, isDirectory, O_DIRECTORY, O_PATH, openFile } from "../ffi/files.ts";

/** Where plugins keep what they keep, and engines the namespaces of containers. */
export const SCRATCH = ["/run", "/var/lib", "/tmp"];

export const NETNS_DIRECTORY = "/run/netns";

/** Our own plugins, for a plugin that delegates to one that its directory lacks. */
export const OWN_PLUGINS = "/run/patchbay-plugins";

/** The kernel's own limit for one path. */
const MOST_LINKS = 40;

const isWithin = (path: string, directory: string) => `${path}/`.startsWith(`${directory}/`);

export function isHidden(path: string): boolean {
  return SCRATCH.some((directory) => isWithin(path, directory));
}

/** Which of the run's own directories contains this one: it could not stay empty if the run showed this one there. */
function covered(directory: string): string | undefined {
  return [...SCRATCH, NETNS_DIRECTORY, OWN_PLUGINS].find((path) => isWithin(path, directory));
}

/** The directories that the run would hide: this one, and where links in it lead. Parents come first. */
export function shownDirectories(directory: string, names: readonly string[]): string[] {
  const behind = names.flatMap((name) => directoriesBehind(`${directory}/${name}`));
  return [...new Set([directory, ...behind])].filter((one) => isHidden(one) && covered(one) === undefined).sort();
}

/** Why the run cannot show the directory; undefined when it can. */
export function whyNotShown(directory: string, names: readonly string[]): string | undefined {
  const refused = (one: string) => isHidden(one) ? covered(one) : undefined, own = refused(directory);
  if (own !== undefined) {
    return `${directory} cannot be where the plugins are, because the run needs ${own} for itself: ` +
      "copy the plugins to a directory of their own";
  }
  for (const name of names) {
    const behind = directoriesBehind(`${directory}/${name}`).find((one) => refused(one) !== undefined);
    if (behind === undefined) continue;
    return `the link ${directory}/${name} leads to ${behind}, and the run needs ${refused(behind)} for itself: ` +
      "copy the plugin to a directory of its own";
  }
  return undefined;
}

/**
 * The directories of the links that follow one another from the path: each as it is written, and without links in it. A
 * link that leads nowhere ends the list.
 */
function directoriesBehind(path: string): string[] {
  const found: string[] = [];
  for (let at = path; found.length < 2 * MOST_LINKS;) {
    const target = linkTarget(at);
    if (target === undefined) break;
    const written = target.startsWith("/") ? target : `${parentOf(at)}/${target}`;
    const parent = parentOf(written);
    if (!exists(parent) || !isDirectory(identify(parent))) break;
    const real = withoutLinks(parent);
    found.push(withoutDots(parent), real);
    at = `${real}/${written.slice(written.lastIndexOf("/") + 1)}`;
  }
  return found;
}

export function withoutLinks(directory: string): string {
  const fd = openFile(directory, O_PATH | O_DIRECTORY);
  try {
    return linkTarget(`/proc/self/fd/${fd}`)!;
  } finally {
    closeFile(fd);
  }
}

const parentOf = (path: string) => path.slice(0, path.lastIndexOf("/")) || "/";

function withoutDots(path: string): string {
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return `/${names.join("/")}`;
}
