/** Programs that a release is made with. */
import debianPackages from "../compile/debian-packages.json";

/** Runs it, and returns what it says on stdout. */
export function output(words: readonly string[], cwd: string, env: Record<string, string> = {}): string {
  const { PATH = "", HOME = "/" } = process.env, [program = ""] = words;
  if (Bun.which(program) === null) {
    const { name } = debianPackages.find(({ has }) => has === program) ?? { name: program };
    throw new Error(`${program} is missing: install Debian's package ${name}`);
  }
  const { exitCode, stdout, stderr } = Bun.spawnSync([...words], {
    cwd,
    // Variables of the caller's environment must not change what is made.
    env: { PATH, HOME, LC_ALL: "C.UTF-8", TZ: "UTC", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  if (exitCode !== 0) throw new Error(`${words.join(" ")} failed:\n${stderr}${stdout}`);
  return stdout.toString();
}
