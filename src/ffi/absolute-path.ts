/** Paths that people and programs give, from the working directory on. */

/** Does not follow links, like Go's filepath.Abs. */
export function absolutePath(path: string): string {
  const parts: string[] = [];
  for (const part of `${path.startsWith("/") ? "" : process.cwd()}/${path}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
