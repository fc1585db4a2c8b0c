/** apt-get with lists and packages of its own: nothing of this machine changes, and of its settings only the sources count. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface PrivateApt {
  /** Where its lists are, and in `cache/archives` the packages that `install --download-only` fetches. */
  folder: string;
  /** As Debian calls it, when not this machine's. */
  architecture?: string;
  /** A file in the place of this machine's sources. */
  sources?: string;
}

/** Options for apt-get and apt-cache. Nothing counts as installed. */
export function privateApt({ folder, architecture, sources }: PrivateApt): string[] {
  for (const part of ["state/lists/partial", "cache/archives/partial"]) {
    mkdirSync(join(folder, part), { recursive: true });
  }
  const nothingInstalled = join(folder, "status");
  writeFileSync(nothingInstalled, "");
  return quietAsRoot({
    "Acquire::Languages": "none",
    "Dir::State": join(folder, "state"),
    "Dir::State::status": nothingInstalled,
    "Dir::Cache": join(folder, "cache"),
    ...architecture === undefined ? {} : { "APT::Architecture": architecture, "APT::Architectures::": architecture },
    ...sources === undefined ? {} : { "Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "-" },
  });
}

/** Root's folders are not open to the user whom apt-get downloads as. */
export function quietAsRoot(settings: Record<string, string> = {}): string[] {
  const all = { "APT::Sandbox::User": "root", ...settings };
  return ["-qq", ...Object.entries(all).flatMap(([key, value]) => ["-o", `${key}=${value}`])];
}
