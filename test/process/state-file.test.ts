/** What is opened as state, and what is refused at once: a table of what may lie at the path, and whose it may be. */
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeFile, O_CREAT, O_RDONLY, O_RDWR, O_WRONLY } from "../../src/ffi/files.ts";
import {
  judgeStateDirectory,
  openStateFile,
  overwriteStateFile,
  readStateFile,
  type Sharing,
  type UntrustedState,
  type Whose,
} from "../../src/process/state-file.ts";
import { needs } from "../support/needs.ts";
import { outcomeOf } from "../support/outcome.ts";

needs("root");

const top = mkdtempSync(join(tmpdir(), "patchbay-state-"));
afterAll(() => rmSync(top, { recursive: true }));
const NOBODY = 65534;

let directory: string, file: string, other: string;
beforeEach(() => {
  directory = mkdtempSync(join(top, "one-"));
  file = join(directory, "file");
  other = join(directory, "other");
  writeFileSync(other, "other", { mode: 0o600 });
});

const make = (mode = 0o600, uid = 0, gid = uid) => {
  writeFileSync(file, "text");
  chmodSync(file, mode);
  chownSync(file, uid, gid);
};
const run = (...command: string[]) => expect(Bun.spawnSync(command).exitCode).toBe(0);
const socketAt = (path: string) => {
  const listener = Bun.listen({ unix: path, socket: { data() {} } });
  // Bun would remove it.
  linkSync(path, `${path}~`);
  listener.stop(true);
  linkSync(`${path}~`, path);
};

/** Why the file is refused; "" when it is not. */
type Refusal = string | Record<Whose, string>;
const ofOwner = (why: string) => ({ own: why, "own group's": why, "anybody's": "" });

const cases: [what: string, put: () => void, refusal: Refusal][] = [
  ["a file", () => make(), ""],
  ["a file that everybody may read", () => make(0o644), ""],
  ["a file of a group", () => make(0o640, 0, NOBODY), ""],
  ["another's file", () => make(0o600, NOBODY), ofOwner("it belongs to uid 65534 with mode 0600")],
  [
    "another's file its group may write",
    () => make(0o660, NOBODY),
    ofOwner("it belongs to uid 65534 with mode 0660"),
  ],
  [
    "a file its group may write",
    () => make(0o660),
    { own: "it belongs to uid 0 with mode 0660", "own group's": "", "anybody's": "" },
  ],
  ["a file that all may write", () => make(0o602), ofOwner("it belongs to uid 0 with mode 0602")],
  ["a file with another name", () => linkSync(other, file), ofOwner("it has 2 names")],
  ["a link to a file", () => symlinkSync(other, file), "it is a symbolic link"],
  ["a link to nothing", () => symlinkSync("/nowhere", file), "it is a symbolic link"],
  ["a link to itself", () => symlinkSync(file, file), "it is a symbolic link"],
  ["a link to a FIFO", () => {
    run("mkfifo", `${file}.fifo`);
    symlinkSync(`${file}.fifo`, file);
  }, "it is a symbolic link"],
  ["a FIFO", () => run("mkfifo", file), "it is a FIFO"],
  ["a directory", () => mkdirSync(file), "it is a directory"],
  ["a socket", () => socketAt(file), "it is a socket"],
  ["an endless device", () => run("mknod", file, "c", "1", "5"), "it is a character device"],
  ["a device that takes everything", () => run("mknod", file, "c", "1", "3"), "it is a character device"],
  ["a block device that is not there", () => run("mknod", file, "b", "250", "250"), "it is a block device"],
];

for (const whose of ["own", "own group's", "anybody's"] as const) {
  test.each(cases)(`%s, for ${whose} state`, (_what, put, refusal) => {
    put();
    const reason = typeof refusal === "string" ? refusal : refusal[whose];
    const refused = `${file} is not trusted: ${reason}`;
    if (reason === "") expect(["text", "other"]).toContain(readStateFile(file, whose)!);
    else expect(() => readStateFile(file, whose)).toThrow(refused);
    // A second name is another file's content, which nobody may overwrite.
    const forWriting = reason === "" && put.toString().includes("linkSync") ? "it has 2 names" : reason;
    for (const flags of [O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_CREAT]) {
      const open = () => closeFile(openStateFile(file, flags, whose).fd);
      const why = flags === O_RDONLY ? reason : forWriting;
      if (why === "") open();
      else expect(open).toThrow(`${file} is not trusted: ${why}`);
    }
    if (forWriting === "") overwriteStateFile(file, "shorter", whose);
    else expect(() => overwriteStateFile(file, "x", whose)).toThrow(forWriting);
    expect(readFileSync(other, "utf8")).toBe("other");
    if (forWriting === "") expect(readFileSync(file, "utf8")).toBe("shorter");
  });
}

describe("the message says what to do about its cause", () => {
  const remedyOf = (work: () => unknown) => (outcomeOf(work) as UntrustedState).nextStep;
  const right = "if what it says is right";
  const remedies: [what: string, put: () => void, remedy: () => string][] = [
    ["owner", () => make(0o600, NOBODY), () => `remove it, or run chown 0 ${file} ${right}`],
    ["group", () => make(0o660), () => `remove it, or run chmod g-w ${file} ${right}`],
    ["everybody", () => make(0o602), () => `remove it, or run chmod o-w ${file} ${right}`],
    ["all", () => make(0o666, NOBODY), () => `remove it, or run chown 0 ${file} and chmod go-w ${file} ${right}`],
    ["another name", () => linkSync(other, file), () => "remove it, or its other names"],
    ["no file", () => symlinkSync(other, file), () => "remove it"],
  ];
  test.each(remedies)("%s", (_what, put, remedy) => {
    put();
    expect(remedyOf(() => readStateFile(file))).toBe(remedy());
  });

  const ofDirectories: [what: string, put: () => void, remedy: () => string][] = [
    ["owner", () => run("install", "-d", "-m755", `-o${NOBODY}`, file), () => `chown 0 ${file}`],
    ["group", () => run("install", "-d", "-m770", file), () => `chmod g-w ${file}`],
    ["everybody", () => run("install", "-d", "-m777", file), () => `chmod go-w ${file}`],
  ];
  test.each(ofDirectories)("of a directory: %s", (_what, put, remedy) => {
    put();
    expect(remedyOf(() => judgeStateDirectory(file))).toBe(
      `it must belong to uid 0 and be writable by nobody else: ${remedy()}`,
    );
  });
});

test("a file is read whole, also one that grows, an empty one, and none", () => {
  for (const length of [0, 1, 8191, 8192, 100_000]) {
    writeFileSync(file, "x".repeat(length), { mode: 0o600 });
    expect(readStateFile(file)).toBe("x".repeat(length));
  }
  expect(readStateFile("/proc/self/status", "anybody's")).toBe(""); // It has no size, so nothing is read.
  expect(() => readStateFile(file, "own", 99_999)).toThrow("file too large");
  rmSync(file);
  expect(readStateFile(file)).toBeUndefined();
  overwriteStateFile(file, "new");
  expect(readFileSync(file, "utf8")).toBe("new");
});

const directories: [what: string, put: () => void, refusal: string | Record<Sharing, string>][] = [
  ["of mode 0700", () => mkdirSync(file, 0o700), ""],
  ["of mode 0755", () => mkdirSync(file, 0o755), ""],
  ["with the group's bit", () => {
    mkdirSync(file);
    chmodSync(file, 0o2755);
  }, ""],
  ["that its group may write", () => {
    mkdirSync(file);
    chmodSync(file, 0o2775);
  }, { private: "it belongs to uid 0 with mode 2775", group: "" }],
  ["that everybody may write", () => {
    mkdirSync(file);
    chmodSync(file, 0o1777);
  }, "it belongs to uid 0 with mode 1777"],
  ["of another's", () => {
    mkdirSync(file);
    chownSync(file, NOBODY, NOBODY);
  }, "it belongs to uid 65534 with mode 0755"],
  ["that is a link", () => symlinkSync(directory, file), "it is a symbolic link"],
  ["that is a FIFO", () => run("mkfifo", file), "it is a FIFO"],
];

for (const sharing of ["private", "group"] as const) {
  test.each(directories)(`a directory %s, for state that is ${sharing}`, (_what, put, refusal) => {
    put();
    const reason = typeof refusal === "string" ? refusal : refusal[sharing];
    if (reason === "") expect(judgeStateDirectory(file, sharing)).toBe(true);
    else expect(() => judgeStateDirectory(file, sharing)).toThrow(`${file} is not trusted: ${reason}`);
  });
}

test("a directory that is not there is no reason to refuse", () => {
  expect(judgeStateDirectory(`${directory}/none`)).toBe(false);
  expect(judgeStateDirectory(`${other}/below`)).toBe(false);
});

test("somebody else's process believes its own files and root's, and no other's", () => {
  const program = `
    import { readStateFile } from "${import.meta.dir}/../../src/process/state-file.ts";
    for (const path of process.argv.slice(1)) {
      try { console.log(readStateFile(path)); } catch (error) { console.log(error.found); }
    }`;
  chmodSync(top, 0o711);
  chmodSync(directory, 0o755);
  const paths = [0, NOBODY, 1].map((uid) => {
    const path = join(directory, `of-${uid}`);
    writeFileSync(path, `of ${uid}`);
    chownSync(path, uid, uid);
    return path;
  });
  const { stdout } = Bun.spawnSync([process.execPath, "-e", program, ...paths], { uid: NOBODY, cwd: "/" });
  expect(stdout.toString()).toBe("of 0\nof 65534\nit belongs to uid 1 with mode 0644\n");
});
