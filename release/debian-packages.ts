/** Debian's packages. The scripts that dpkg runs are in release/debian. */
import { join } from "node:path";
import manifest from "../package.json";
import { commonPlaces, fileOfCheckout } from "./contents.ts";
import { changesOf, type Edition, type Making } from "./edition.ts";
import { bytesOf, compressed, type Entry, type File, isFile, writeEntries } from "./files.ts";
import { licenceEntries } from "./licences.ts";
import {
  linkEntries,
  type LinksPackage,
  linksPackages,
  type PackagePlaces,
  programEntries,
  script,
} from "./packages.ts";
import { output } from "./run.ts";

interface Package {
  name: string;
  architecture: string;
  control: Record<string, string>;
  summary: string;
  about: string;
  entries: Entry[];
  /** The file of Debian's own changelog: with a name of its own beside that of the program. */
  packagingLog: string;
  scripts: Record<string, string>;
}

const places: PackagePlaces = {
  ...commonPlaces,
  zsh: "usr/share/zsh/vendor-completions/",
  units: "lib/systemd/system/",
};

const own = (name: string) => fileOfCheckout(`release/debian/${name}`);
const directories = linksPackages.map(({ directory }) => directory.debian);

/** Returns the path of the package, as the next does. */
export function makeProgramPackage(program: string, architecture: string, making: Making): string {
  const { edition } = making;
  return build({
    name: "patchbay",
    architecture,
    control: {
      Depends: "libc6 (>= 2.17), init-system-helpers (>= 1.54~)",
      Recommends: "libnl-3-200",
      Suggests: "patchbay-cni",
      "Multi-Arch": "foreign",
    },
    summary: manifest.description,
    about: ` One executable that is each of the CNI reference plugins, by the name that it
 is called by, and a runtime that attaches containers to whole networks. What
 an attachment consists of is recorded before it is made, so that it can be
 removed whatever happens.
 .
 The plugins are in patchbay-cni, for engines of this distribution, and in
 patchbay-opt-cni, for Kubernetes and others that look in /opt/cni/bin.`,
    entries: [
      ...programEntries(program, edition, places),
      ...licenceEntries("usr/share/doc/patchbay/"),
      compressed({ path: "usr/share/doc/patchbay/changelog", text: `${changesOf(edition.version)}\n` }),
    ],
    packagingLog: "changelog.Debian",
    scripts: Object.fromEntries(["preinst", "prerm", "postinst", "postrm"].map((name) => [
      name,
      script(`release/debian/patchbay.${name}`, { name: "patchbay", directories }),
    ])),
  }, making);
}

export function makeLinksPackage(links: LinksPackage, making: Making): string {
  const { name, replaced, provided, directory: { debian: directory } } = links;
  return build({
    name,
    architecture: "all",
    control: {
      Depends: `patchbay (= ${making.edition.packageVersion})`,
      Provides: provided.map(({ name, version }) => `${name} (= ${version})`).join(", "),
      Conflicts: replaced,
      Replaces: replaced,
    },
    summary: `${manifest.description}: /${directory}`,
    about: ` Links in /${directory} by which container engines call Patchbay, in the
 place of the plugins of ${replaced}.`,
    entries: linkEntries(links, directory, places),
    packagingLog: "changelog",
    scripts: { prerm: script("release/debian/links.prerm", { name, directories: [directory], replaced }) },
  }, making);
}

function build(one: Package, { edition, work, out }: Making): string {
  const { name, architecture, entries, scripts } = one;
  const tree = join(work, `${name}_${architecture}`);
  const contents = [...entries, ...documentsOf(one, edition)];
  writeEntries(tree, [
    ...contents,
    { path: "DEBIAN/control", text: controlOf(one, edition, sizeOf(contents)) },
    ...Object.entries(scripts).map(([script, text]) => ({ path: `DEBIAN/${script}`, text, isExecutable: true })),
    { path: "DEBIAN/md5sums", text: digestsOf(contents) },
  ], edition.epoch);
  const file = join(out, `${name}_${edition.packageVersion}_${architecture}.deb`);
  const env = { SOURCE_DATE_EPOCH: String(edition.epoch) };
  // xz saves a fifth of the size, and takes the node that installs it four times as long.
  output(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z9", "--build", tree, file], work, env);
  return file;
}

/** Debian Policy 12.5 and 12.7, and what lintian may find. */
function documentsOf({ name, packagingLog }: Package, edition: Edition): Entry[] {
  const date = new Date(edition.epoch * 1000).toUTCString().replace("GMT", "+0000");
  const log =
    `${name} (${edition.packageVersion}) stable; urgency=medium\n\n  * Release ${edition.packageVersion}.\n\n` +
    ` -- ${edition.maintainer}  ${date}\n`;
  return [
    compressed({ path: `usr/share/doc/${name}/${packagingLog}`, text: log }),
    { path: `usr/share/doc/${name}/copyright`, text: own("copyright") },
    { path: `usr/share/lintian/overrides/${name}`, text: own(`${name}.lintian-overrides`) },
  ];
}

function controlOf(one: Package, edition: Edition, kibibytes: number): string {
  const fields = {
    Package: one.name,
    Version: edition.packageVersion,
    Section: "admin",
    Priority: "optional",
    Architecture: one.architecture,
    Maintainer: edition.maintainer,
    "Installed-Size": String(kibibytes),
    ...one.control,
  };
  const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\n`).join("");
  return `${lines}Description: ${one.summary}\n${one.about}\n`;
}

/** dpkg counts a kibibyte for what has no content. */
function sizeOf(entries: readonly Entry[]): number {
  const sizes = entries.map((entry) => isFile(entry) ? Math.ceil(bytesOf(entry).length / 1024) : 0);
  return sizes.reduce((sum, size) => sum + Math.max(1, size), 0);
}

function digestsOf(entries: readonly Entry[]): string {
  const digest = (file: File) => new Bun.CryptoHasher("md5").update(bytesOf(file)).digest("hex");
  return entries.filter(isFile).map((file) => `${digest(file)}  ${file.path}\n`).join("");
}
