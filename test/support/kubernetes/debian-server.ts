/**
 * A real API server of Kubernetes: Debian 12 has the whole source of 1.20.2, with what it depends on, as a source package.
 * It is built once, into `.cache`, by Debian's Go and without a network; run by itself, this file does that. It takes ten
 * minutes of two processors and 2 GB, and leaves one file of 110 MB.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { madeOnce } from "../../../compile/made-once.ts";
import { privateApt } from "../../../compile/private-apt.ts";

const cache = resolve(import.meta.dir, "../../../.cache/kubernetes");
const KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg";
const SOURCE = "kubernetes", RELEASE = "bookworm", VERSION = "1.20.2";
/** One of its parts, in a version that Go can run since 1.18: the packaged one dies at the first kind of a user's own. */
const NEWER_PART = { package: "golang-github-modern-go-reflect2-dev", path: "github.com/modern-go/reflect2" };
const GO = "/usr/lib/go-1.19/bin";

/** The path of kube-apiserver. */
export function debianApiServer(): string {
  const made = madeOnce(join(cache, VERSION), (unfinished) => {
    const work = join(unfinished, "work");
    try {
      copyFileSync(build(work), join(unfinished, "kube-apiserver"));
    } finally {
      makeWritable(work);
      rmSync(work, { recursive: true, force: true });
    }
  });
  return join(made, "kube-apiserver");
}

function build(work: string): string {
  for (const program of [`${GO}/go`, "make", "rsync", "jq"]) {
    if (Bun.which(program) === null) throw new Error(`${program} is needed; \`npm test\` sets up what tests need`);
  }
  const apt = ownApt(work), tree = unpackSource(apt, work), log = join(work, "build.log");
  replacePart(apt, tree, work);
  mkdirSync(join(tree, ".go/src/k8s.io"), { recursive: true });
  symlinkSync("../../..", join(tree, `.go/src/k8s.io/${SOURCE}`));
  const version = {
    KUBE_GIT_VERSION: `v${VERSION}`,
    KUBE_GIT_COMMIT: "0".repeat(40),
    KUBE_GIT_TREE_STATE: "archive",
  };
  run(["sh", "-c", `exec make WHAT=cmd/kube-apiserver >"${log}" 2>&1`], tree, {
    ...version,
    ...{
      PATH: `${GO}:/usr/sbin:/usr/bin:/sbin:/bin`,
      HOME: work,
      GOPATH: join(tree, ".go"),
      GOCACHE: join(work, "objects"),
    },
    ...{ GO111MODULE: "off", GOPROXY: "off", CGO_ENABLED: "0" },
  }, log);
  return join(tree, "_output/bin/kube-apiserver");
}

/** apt-get for packages and their sources, from where this machine has its packages, under the same signature. */
function ownApt(work: string): string[] {
  const sources = join(work, "sources.list"), kinds = ["deb", "deb-src"];
  mkdirSync(work, { recursive: true });
  const lines = ownPlaces().flatMap((place) => kinds.map((kind) => `${kind} ${signed()}${place} ${RELEASE} main\n`));
  writeFileSync(sources, lines.join(""));
  const apt = ["apt-get", ...privateApt({ folder: join(work, "apt"), sources })];
  run([...apt, "update"], work);
  return apt;
}

function unpackSource(apt: string[], work: string): string {
  const tree = join(work, "tree");
  mkdirSync(tree);
  run([...apt, "source", "--download-only", SOURCE], work);
  const archive = readdirSync(work).find((name) => name.endsWith(".orig.tar.gz"))!;
  // Debian's patches are for kubectl.
  run(["tar", "-xf", archive, "--strip-components=1", "-C", tree], work);
  return tree;
}

function replacePart(apt: string[], tree: string, work: string): void {
  const unpacked = join(work, "part"), target = join(tree, "vendor", NEWER_PART.path);
  mkdirSync(unpacked);
  run([...apt, "download", NEWER_PART.package], unpacked);
  run(["sh", "-ec", "dpkg-deb --fsys-tarfile *.deb | tar -x"], unpacked);
  const files = join(unpacked, "usr/share/gocode/src", NEWER_PART.path),
    isCode = (name: string) => /\.(go|s)$/.test(name);
  for (const name of readdirSync(target).filter(isCode)) rmSync(join(target, name));
  for (const name of readdirSync(files).filter((each) => isCode(each) && !each.endsWith("_test.go"))) {
    copyFileSync(join(files, name), join(target, name));
  }
}

function ownPlaces(): string[] {
  const { stdout } = Bun.spawnSync([
    ...["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)", "Created-By: Packages"],
  ]);
  const places = stdout.toString().split("\n").map((line) => line.split(" "));
  const own = [...new Set(places.filter(([release]) => release === RELEASE).map(([, place]) => place!))];
  if (own.length === 0) throw new Error(`apt-get has no source of packages for ${RELEASE}, as Debian 12 has`);
  return own;
}

function signed(): string {
  return existsSync(KEYS) ? `[signed-by=${KEYS}] ` : "";
}

function makeWritable(work: string): void {
  if (existsSync(work)) Bun.spawnSync(["chmod", "-R", "u+w", work]);
}

function run(command: string[], cwd: string, env?: Record<string, string>, log?: string): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd, stdin: "ignore", ...env && { env } });
  if (exitCode === 0) return;
  const said = log === undefined ? `${stderr}` : Bun.spawnSync(["tail", "-n", "20", log]).stdout.toString();
  throw new Error(`${command.slice(0, 6).join(" ")} …: exit ${exitCode}\n${said}`);
}

if (import.meta.main) console.log(debianApiServer());
