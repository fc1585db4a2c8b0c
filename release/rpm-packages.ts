/** RPM's packages, of the same three parts as Debian's (debian-packages.ts). */
import { join } from "node:path";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { pluginNames } from "../src/plugins/table.ts";
import { completionEntries, fileOfCheckout, manEntries, type Places, unitEntries } from "./contents.ts";
import { type Edition, SUMMARY } from "./edition.ts";
import { type Entry, writeEntries } from "./files.ts";
import { licenceEntries } from "./licences.ts";
import { output } from "./run.ts";

const PROGRAM = "usr/lib/patchbay/patchbay";
/** The reference plugins that ours behave as. */
const REFERENCE = "1.9.1";

const places: Places = {
  man: (section) => `usr/share/man/man${section}/`,
  bash: "usr/share/bash-completion/completions/",
  zsh: "usr/share/zsh/site-functions/",
  fish: "usr/share/fish/vendor_completions.d/",
  units: "usr/lib/systemd/system/",
};

interface Package {
  name: string;
  architecture: string;
  tags: string[];
  about: string;
  entries: Entry[];
  scriptlets: string;
}

export function makeProgramRpm(
  program: string,
  architecture: string,
  edition: Edition,
  work: string,
  out: string,
): string {
  const licences = licenceEntries("usr/share/licenses/patchbay/");
  return build(
    {
      name: "patchbay",
      architecture,
      tags: ["Requires: glibc >= 2.17", "Recommends: libnl3", "Suggests: patchbay-cni"],
      about: `One executable that is each of the CNI reference plugins, by the name that it
is called by, and a runtime that attaches containers to whole networks. The
plugins are in patchbay-cni and patchbay-opt-cni.`,
      entries: [
        { path: PROGRAM, copyOf: program, isExecutable: true },
        { path: "usr/bin/patchbay", leadsTo: "../lib/patchbay/patchbay" },
        { path: "usr/bin/cnitool", leadsTo: "../lib/patchbay/patchbay" },
        ...manEntries(edition, places, true),
        ...completionEntries(places),
        ...unitEntries(places, `/${PROGRAM}`),
        { path: "usr/share/licenses/patchbay/LICENSE", text: fileOfCheckout("LICENSE") },
        ...licences,
        { path: "usr/share/doc/patchbay/CHANGELOG.md", text: fileOfCheckout("CHANGELOG.md") },
      ],
      scriptlets: fileOfCheckout("release/rpm/patchbay.scriptlets"),
    },
    edition,
    work,
    out,
  );
}

/** For podman and others of the distribution. */
export function makeCniRpm(edition: Edition, work: string, out: string): string {
  const provided = ["container-network-stack = 1", `containernetworking-plugins = ${REFERENCE}`];
  return makeLinks("patchbay-cni", "usr/libexec/cni", "../../lib/patchbay/patchbay", {
    provided,
    replaced: "containernetworking-plugins",
  }, [edition, work, out]);
}

/** For kubelets, and engines that were installed by hand. */
export function makeOptCniRpm(edition: Edition, work: string, out: string): string {
  return makeLinks("patchbay-opt-cni", "opt/cni/bin", `/${PROGRAM}`, {
    provided: [`kubernetes-cni = ${REFERENCE}`],
    replaced: "kubernetes-cni",
  }, [edition, work, out]);
}

function makeLinks(
  name: string,
  directory: string,
  program: string,
  { provided, replaced }: { provided: string[]; replaced: string },
  [edition, work, out]: [Edition, string, string],
): string {
  return build(
    {
      name,
      architecture: "noarch",
      tags: [
        `Requires: patchbay = ${edition.version}`,
        ...provided.map((one) => `Provides: ${one}`),
        `Conflicts: ${replaced}`,
      ],
      about: `Links in /${directory} by which container engines call Patchbay, in the
place of the plugins of ${replaced}.`,
      entries: pluginNames.map((plugin) => ({ path: `${directory}/${plugin}`, leadsTo: program })),
      scriptlets: fileOfCheckout("release/rpm/links.scriptlets").replaceAll("DIRECTORY", directory).replaceAll(
        "NAME",
        name,
      ),
    },
    edition,
    work,
    out,
  );
}

/** Answers the path of the package. */
function build(one: Package, edition: Edition, work: string, out: string): string {
  const top = join(work, `rpm-${one.name}-${one.architecture}`), tree = join(top, "tree");
  writeEntries(tree, one.entries, edition.epoch);
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
  mkdirSync(join(top, "made"), { recursive: true });
  output(["rpmbuild", "-bb", "--quiet", "--target", one.architecture, ...defined, spec], top, env);
  const file = join(out, `${one.name}-${edition.version}-1.${one.architecture}.rpm`);
  renameSync(join(top, "made/made.rpm"), file);
  rmSync(top, { recursive: true });
  return file;
}

function specOf({ name, architecture, tags, about, entries, scriptlets }: Package, edition: Edition): string {
  const files = entries.map(({ path, isExecutable }) =>
    `${kindOf(path)}%attr(0${isExecutable ? 755 : 644},root,root) "/${path}"`
  );
  return `Name: ${name}
Version: ${edition.version}
Release: 1
Summary: ${SUMMARY}
License: Apache-2.0 AND MIT AND LGPL-2.0-only AND LGPL-2.1-only
Group: System/Base
Packager: ${edition.maintainer}
${architecture === "noarch" ? "BuildArch: noarch\n" : ""}AutoReqProv: no
${tags.join("\n")}

%description
${about}

%install
mkdir -p %{buildroot}
cp -a %{_topdir}/tree/. %{buildroot}/

${scriptlets}
%changelog
* ${dateOf(edition)} ${edition.maintainer} - ${edition.version}-1
- Release ${edition.version}.

%files
%defattr(-,root,root,-)
${ownDirectories(entries).map((path) => `%dir "/${path}"\n`).join("")}${files.join("\n")}
`;
}

/** The others are the distribution's. */
function ownDirectories(entries: readonly Entry[]): string[] {
  return [...new Set(entries.map(({ path }) => path.slice(0, path.lastIndexOf("/"))))].filter((path) =>
    path.endsWith("/patchbay")
  );
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
