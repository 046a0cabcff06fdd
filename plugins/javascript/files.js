// Files in the directories that the operator granted, through wasi:filesystem; and `require("fs")`.
//
// Without a grant there are none, and every path is ENOENT. What a path may reach, links and `..`
// included, is decided by the host; nothing is checked twice here.

import preopens from "wasi:filesystem/preopens@0.2.12";

import { bytesOf, decode, encode } from "./utf8.js";

const READ_BYTES = 1 << 20;
const FOLLOW = { symlinkFollow: true };

/** What the host says, as Node names it. */
const CODES = {
  "access": ["EACCES", "permission denied"],
  "bad-descriptor": ["EBADF", "bad file descriptor"],
  "exist": ["EEXIST", "file already exists"],
  "invalid": ["EINVAL", "invalid argument"],
  "is-directory": ["EISDIR", "illegal operation on a directory"],
  "loop": ["ELOOP", "too many symbolic links encountered"],
  "name-too-long": ["ENAMETOOLONG", "name too long"],
  "no-entry": ["ENOENT", "no such file or directory"],
  "not-directory": ["ENOTDIR", "not a directory"],
  "not-empty": ["ENOTEMPTY", "directory not empty"],
  "not-permitted": ["EPERM", "operation not permitted"],
  "insufficient-space": ["ENOSPC", "no space left on device"],
  "read-only": ["EROFS", "read-only file system"],
};

export function isFile(path) {
  try {
    return stat(path).type === "regular-file";
  } catch {
    return false;
  }
}

export function readText(path) {
  return decode(readBytes(path));
}

/** Where relative paths start: the first granted directory. */
export function workingDirectory() {
  return granted()[0]?.[1] ?? "/";
}

/** Asked for once: each answer holds new handles. */
let directories;

function granted() {
  directories ??= preopens.getDirectories();
  return directories;
}

/** Uses a handle and gives it back; what is kept open counts against the host's bounds. */
function using(handle, use) {
  try {
    return use(handle);
  } finally {
    handle[Symbol.dispose]();
  }
}

/** `require("fs")`; `stdin` gives the file 0. */
export function makeFs(stdin) {
  const encodingOf = (options) => (typeof options === "string" ? options : options?.encoding);
  const fs = {
    readFileSync(path, options) {
      const bytes = path === 0 || path === "/dev/stdin" ? encode(stdin()) : readBytes(path);
      const encoding = encodingOf(options);
      if (encoding === undefined || encoding === null) return new FileBytes(bytes.buffer, bytes.byteOffset, bytes.length);
      if (!/^utf-?8$/i.test(encoding)) throw new TypeError(`the encoding '${encoding}' is not known here; there is utf8`);
      return decode(bytes);
    },
    writeFileSync(path, data) {
      writeBytes(path, data, { create: true, truncate: true });
    },
    appendFileSync(path, data) {
      writeBytes(path, data, { create: true }, true);
    },
    existsSync(path) {
      try {
        stat(path);
        return true;
      } catch {
        return false;
      }
    },
    statSync(path) {
      const { type, size } = stat(path);
      return { size, isFile: () => type === "regular-file", isDirectory: () => type === "directory" };
    },
    readdirSync(path) {
      return at("scandir", path, (directory, rest) => {
        const names = [];
        using(directory.openAt(FOLLOW, rest, { directory: true }, { read: true }), (opened) =>
          using(opened.readDirectory(), (entries) => {
            for (let entry = entries.readDirectoryEntry(); entry; entry = entries.readDirectoryEntry()) names.push(entry.name);
          }),
        );
        return names.filter((name) => name !== "." && name !== "..").sort();
      });
    },
    mkdirSync(path, { recursive = false } = {}) {
      if (recursive) {
        const parent = String(path).replace(/\/+[^/]*\/*$/, "");
        if (fs.existsSync(path)) return;
        if (parent !== "" && parent !== path && !fs.existsSync(parent)) fs.mkdirSync(parent, { recursive });
      }
      at("mkdir", path, (directory, rest) => directory.createDirectoryAt(rest));
    },
    unlinkSync(path) {
      at("unlink", path, (directory, rest) => directory.unlinkFileAt(rest));
    },
    rmdirSync(path) {
      at("rmdir", path, (directory, rest) => directory.removeDirectoryAt(rest));
    },
    renameSync(from, to) {
      at("rename", from, (directory, rest) =>
        at("rename", to, (toDirectory, toRest) => directory.renameAt(rest, toDirectory, toRest)),
      );
    },
  };
  return fs;
}

/** The bytes of a file; like a Buffer, it is its text as UTF-8 where a text is asked for. */
class FileBytes extends Uint8Array {
  toString() {
    return decode(this);
  }
}

function readBytes(path) {
  const parts = [];
  let size = 0;
  at("open", path, (directory, rest) =>
    using(directory.openAt(FOLLOW, rest, {}, { read: true }), (file) => {
      for (let isEnd = false; !isEnd; ) {
        const [bytes, isLast] = file.read(READ_BYTES, size);
        parts.push(bytes);
        size += bytes.length;
        isEnd = isLast || bytes.length === 0;
      }
    }),
  );
  const whole = new Uint8Array(size);
  let to = 0;
  for (const part of parts) {
    whole.set(part, to);
    to += part.length;
  }
  return whole;
}

function writeBytes(path, data, openFlags, isAppending = false) {
  const bytes = ArrayBuffer.isView(data) ? bytesOf(data) : encode(String(data));
  at("open", path, (directory, rest) =>
    using(directory.openAt(FOLLOW, rest, openFlags, { write: true }), (file) => {
      let offset = isAppending ? file.stat().size : 0;
      for (let from = 0; from < bytes.length; ) {
        const written = file.write(bytes.slice(from, from + READ_BYTES), offset);
        from += written;
        offset += written;
      }
    }),
  );
}

function stat(path) {
  return at("stat", path, (directory, rest) => directory.statAt(FOLLOW, rest));
}

/** Calls `use` with the granted directory that `path` is in, and with the rest of the path. */
function at(verb, path, use) {
  const whole = String(path).startsWith("/") ? String(path) : `${granted()[0]?.[1] ?? ""}/${path}`;
  const isIn = ([, root]) => whole === root || whole.startsWith(root.endsWith("/") ? root : `${root}/`);
  const [directory, root] = granted().find(isIn) ?? [];
  if (directory === undefined) throw systemError("no-entry", verb, path);
  try {
    return use(directory, whole.slice(root.length).replace(/^\/+/, "") || ".");
  } catch (error) {
    throw typeof error?.payload === "string" ? systemError(error.payload, verb, path) : error;
  }
}

function systemError(name, verb, path) {
  const [code, text] = CODES[name] ?? ["EIO", name];
  return Object.assign(new Error(`${code}: ${text}, ${verb} '${path}'`), { code, syscall: verb, path: String(path) });
}
