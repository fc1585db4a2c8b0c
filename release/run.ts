/** Programs that a release is made with. */

/** Runs it, and returns what it says on stdout. */
export function output(words: readonly string[], cwd: string, env: Record<string, string> = {}): string {
  const { PATH = "", HOME = "/" } = process.env;
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
