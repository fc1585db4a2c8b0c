/** RPM's packages. The scripts that rpm runs are in release/rpm. */
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import manifest from "../package.json";
import { commonPlaces, fileOfCheckout } from "./contents.ts";
import type { Edition, Making } from "./edition.ts";
import { directoriesOf, type Entry, modeOf, writeEntries } from "./files.ts";
import { licenceEntries, programLicence } from "./licences.ts";
import {
  linkEntries,
  type LinksPackage,
  linksPackages,
  type PackagePlaces,
  programEntries,
  script,
} from "./packages.ts";
import { output } from "./run.ts";

const places: PackagePlaces = {
  ...commonPlaces,
  zsh: "usr/share/zsh/site-functions/",
  units: "usr/lib/systemd/system/",
};

interface Package {
  name: string;
  architecture: string;
  licence: string;
  tags: string[];
  about: string;
  entries: Entry[];
  scriptlets: string;
}

/** Returns the path of the package, as the next does. */
export function makeProgramRpm(program: string, architecture: string, making: Making): string {
  return build({
    name: "patchbay",
    architecture,
    licence: programLicence(),
    tags: ["Requires: glibc >= 2.17", "OrderWithRequires: systemd", "Recommends: libnl3", "Suggests: patchbay-cni"],
    about: `One executable that is each of the CNI reference plugins, by the name that it
is called by, and a runtime that attaches containers to whole networks. The
plugins are in patchbay-cni and patchbay-opt-cni.`,
    entries: [
      ...programEntries(program, making.edition, places),
      { path: "usr/share/licenses/patchbay/LICENSE", text: fileOfCheckout("LICENSE") },
      ...licenceEntries("usr/share/licenses/patchbay/"),
      { path: "usr/share/doc/patchbay/CHANGELOG.md", text: fileOfCheckout("CHANGELOG.md") },
    ],
    scriptlets: script("release/rpm/patchbay.scriptlets", {
      name: "patchbay",
      directories: linksPackages.map(({ directory }) => directory.rpm),
    }),
  }, making);
}

export function makeLinksRpm(links: LinksPackage, making: Making): string {
  const { name, replaced, provided, directory: { rpm: directory } } = links;
  return build({
    name,
    architecture: "noarch",
    licence: manifest.license,
    tags: [
      `Requires: patchbay = ${making.edition.packageVersion}`,
      ...provided.map(({ name, version }) => `Provides: ${name} = ${version}`),
      `Conflicts: ${replaced}`,
    ],
    about: `Links in /${directory} by which container engines call Patchbay, in the
place of the plugins of ${replaced}.`,
    entries: linkEntries(links, directory, places),
    scriptlets: script("release/rpm/links.scriptlets", { name, directories: [directory] }),
  }, making);
}

function build(one: Package, { edition, work, out }: Making): string {
  const top = join(work, `rpm-${one.name}-${one.architecture}`);
  writeEntries(join(top, "tree"), one.entries, edition.epoch);
  mkdirSync(join(top, "made"));
  const spec = join(top, `${one.name}.spec`);
  writeFileSync(spec, specOf(one, edition));
  const macros = {
    _topdir: top,
    _rpmdir: join(top, "made"),
    _rpmfilename: "made.rpm",
    _buildhost: "localhost",
    _binary_payload: "w9.gzdio",
    _build_id_links: "none",
    use_source_date_epoch_as_buildtime: "1",
    clamp_mtime_to_source_date_epoch: "1",
    // What they would strip and compress is as it should be.
    __os_install_post: "%{nil}",
    debug_package: "%{nil}",
  };
  const defined = Object.entries(macros).flatMap(([name, value]) => ["--define", `${name} ${value}`]);
  const env = { SOURCE_DATE_EPOCH: String(edition.epoch), HOME: top };
  output(["rpmbuild", "-bb", "--quiet", "--target", one.architecture, ...defined, spec], top, env);
  const file = join(out, `${one.name}-${edition.packageVersion}-1.${one.architecture}.rpm`);
  renameSync(join(top, "made/made.rpm"), file);
  rmSync(top, { recursive: true });
  return file;
}

function specOf(
  { name, architecture, licence, tags, about, entries, scriptlets }: Package,
  edition: Edition,
): string {
  const maintainer = edition.maintainer.replaceAll("%", "%%");
  // The others are the distribution's.
  const ours = directoriesOf(entries).filter((path) => /\/patchbay(?:\/|$)/.test(path));
  const directories = ours.map((path) => `%dir "/${path}"`);
  const files = entries.map((entry) =>
    `${kindOf(entry.path)}%attr(0${modeOf(entry).toString(8)},root,root) "/${entry.path}"`
  );
  return `Name: ${name}
Version: ${edition.packageVersion}
Release: 1
Summary: ${manifest.description}
License: ${licence}
Group: System/Base
Packager: ${maintainer}
${architecture === "noarch" ? "BuildArch: noarch\n" : ""}AutoReqProv: no
${tags.join("\n")}

%description
${about}

%install
mkdir -p %{buildroot}
cp -a %{_topdir}/tree/. %{buildroot}/

${scriptlets}
%changelog
* ${dateOf(edition)} ${maintainer} - ${edition.packageVersion}-1
- Release ${edition.packageVersion}.

%files
%defattr(-,root,root,-)
${[...directories, ...files].join("\n")}
`;
}

/** As changelogs of RPM have it. */
function dateOf({ epoch }: Edition): string {
  const [weekday, day, month, year] = new Date(epoch * 1000).toUTCString().split(/[ ,]+/);
  return `${weekday} ${month} ${day} ${year}`;
}

function kindOf(path: string): string {
  if (path.startsWith("usr/share/licenses/")) return "%license ";
  if (path.startsWith("usr/share/man/") || path.startsWith("usr/share/doc/")) return "%doc ";
  return "";
}
