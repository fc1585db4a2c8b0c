/** What archives and packages contain besides the program, and where it goes in each. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { completionScript } from "../src/frontends/cli/commands/completion.ts";
import { PROGRAM_NAMES } from "../src/install/program-links.ts";
import { type Edition, root } from "./edition.ts";
import type { File } from "./files.ts";
import { manPages } from "./man/pages.ts";

/** Directories, each with a slash at its end. */
export interface Places {
  man(section: string): string;
  bash: string;
  zsh: string;
  fish: string;
}

/** Distributions agree on these. */
export const commonPlaces = {
  man: (section: string) => `usr/share/man/man${section}/`,
  bash: "usr/share/bash-completion/completions/",
  fish: "usr/share/fish/vendor_completions.d/",
};

const KUBERNETES = "release/kubernetes";
/** Where packages and the image have its files. */
export const KUBERNETES_PLACE = "usr/share/patchbay/kubernetes/";

export function manEntries({ epoch }: Edition, { man }: Places): File[] {
  return manPages(epoch).map(({ name, text }) => ({
    path: `${man(name.slice(name.lastIndexOf(".") + 1))}${name}`,
    text,
  }));
}

export function completionEntries({ bash, zsh, fish }: Places): File[] {
  return PROGRAM_NAMES.flatMap((program) => [
    { path: `${bash}${program}`, text: completionScript("bash", program) },
    { path: `${zsh}_${program}`, text: completionScript("zsh", program) },
    { path: `${fish}${program}.fish`, text: completionScript("fish", program) },
  ]);
}

/** For editors (docs/editors.md). */
export function schemaEntries(directory: string): File[] {
  return readdirSync(join(root, "schemas")).sort()
    .map((name) => ({ path: `${directory}${name}`, text: fileOfCheckout(`schemas/${name}`) }));
}

/** For a cluster whose store is Kubernetes (docs/cluster.md). */
export function kubernetesEntries(directory: string): File[] {
  return readdirSync(join(root, KUBERNETES)).sort()
    .map((name) => ({ path: `${directory}${name}`, text: fileOfCheckout(`${KUBERNETES}/${name}`) }));
}

export function fileOfCheckout(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
